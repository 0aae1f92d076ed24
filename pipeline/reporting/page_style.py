"""The style sheet of index.html: light or dark as the browser prefers, with the contents at the side of a wide window.

Wide tables scroll in their own box. In print, folded tables are open. Attention maps, folded curves of single runs and
the details of each run's origin are not printed.
"""

STYLE = """
:root { color-scheme: light dark; --paper: #fcfcfa; --ink: #23262b; --soft: #5d6470; --rule: #dfe1e4; --card: #ffffff;
  --accent: #1f5fae; --tint: #f1f4f8; --ours: #eaf2fb; }
@media screen and (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e2e5ea; --soft: #9aa3b0; --rule: #2c323a;
  --card: #1a1e23; --accent: #7fb2f0; --tint: #20262d; --ours: #1b2b3e; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
.page { max-width: 80rem; margin: 0 auto; padding: 0 clamp(1rem, 3vw, 2.5rem); min-width: 0; }
header { padding-top: clamp(1.2rem, 3vw, 2.4rem); }
h1 { font-size: clamp(1.8rem, 5vw, 2.9rem); line-height: 1.12; letter-spacing: -.015em; margin: 0 0 .6rem;
  text-wrap: balance; }
h2 { font-size: 1.5rem; line-height: 1.25; margin: 3.2rem 0 .5rem; padding-top: 1.3rem; border-top: 1px solid var(--rule);
  text-wrap: balance; }
h3 { font-size: 1.12rem; margin: 1.8rem 0 .4rem; overflow-wrap: anywhere; }
p { max-width: 44rem; margin: .5rem 0 1rem; }
a { color: var(--accent); text-underline-offset: .16em; text-decoration-thickness: 1px; }
.lede { font-size: 1.12rem; color: var(--soft); }
nav ul { list-style: none; display: flex; gap: .9rem; overflow-x: auto; white-space: nowrap; margin: 0; padding: .8rem 1rem .4rem; }
nav { font-size: .9rem; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
@media (min-width: 70rem) { body { display: grid; grid-template-columns: 14rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; border-right: 1px solid var(--rule); background: var(--card); }
  nav ul { display: block; white-space: normal; padding: 2.6rem 1.2rem; } nav li { margin: .45rem 0; } nav a { color: var(--ink); }
  .page { margin: 0; width: 100%; } }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 14rem), 1fr)); gap: .8rem; margin: 1rem 0; }
.card { border: 1px solid var(--rule); border-top: 3px solid var(--accent); border-radius: 8px; background: var(--card);
  padding: .7rem .9rem; min-width: 0; }
.card p { margin: 0; line-height: 1.35; }
.card .study { font-size: .84rem; font-weight: 600; color: var(--soft); overflow-wrap: anywhere; }
.card .figure { font-size: 1.75rem; font-weight: 650; letter-spacing: -.01em; margin: .25rem 0 .1rem;
  font-variant-numeric: tabular-nums lining-nums; }
.card .says { font-size: .9rem; }
.card .about { font-size: .8rem; color: var(--soft); margin-top: .35rem; }
.card.recorded { border-top-color: var(--soft); }
.card.not-done { border-style: dashed; border-top: 1px dashed var(--soft); background: none; }
.card.not-done .figure { color: var(--soft); }
.interval { display: block; position: relative; height: 9px; min-width: 6rem; margin-top: 3px; }
.interval i { position: absolute; top: 3px; height: 3px; background: var(--accent); opacity: .45; border-radius: 2px; }
.interval b { position: absolute; top: 0; width: 3px; margin-left: -1px; height: 9px; background: var(--accent); }
.scroll { overflow-x: auto; margin: .8rem 0; border: 1px solid var(--rule); border-radius: 8px; background: var(--card); }
.scroll:focus-visible, summary:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: separate; border-spacing: 0; font-size: .84rem; line-height: 1.35; width: 100%;
  font-variant-numeric: tabular-nums lining-nums; }
th, td { padding: .42rem .62rem; text-align: left; vertical-align: baseline; white-space: nowrap; }
th { vertical-align: bottom; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--rule);
  white-space: normal; min-width: 3.2rem; }
td.n, th.n { text-align: right; }
td.t { white-space: normal; min-width: 20rem; }
tr { background: var(--card); }
td:first-child { white-space: normal; overflow-wrap: break-word; min-width: 8rem; max-width: 15rem; }
td.n:first-child { min-width: 0; }
td.t:first-child { min-width: 14rem; }
th:first-child, td:first-child { position: sticky; left: 0; background: inherit; }
tbody tr:nth-child(even) { background: var(--tint); }
tbody tr.ours { background: var(--ours); }
tbody tr.group td { border-top: 1px solid var(--rule); }
td small { display: block; color: var(--soft); font-size: .86em; }
td sup, th sub { line-height: 0; }
code { font: .82em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.note { color: var(--soft); font-size: .84rem; line-height: 1.5; max-width: 52rem; margin: .35rem 0; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr)); grid-auto-flow: dense;
  gap: 1rem; margin: 1rem 0; }
figure { margin: 0; padding: .8rem; border: 1px solid var(--rule); border-radius: 8px; background: var(--card); min-width: 0; }
figure img { display: block; width: 100%; max-width: 40rem; height: auto; margin: 0 auto; }
.pictures .wide { grid-column: 1 / -1; }
.pictures .wide img { max-width: 56rem; }
.maps { display: flex; flex-wrap: wrap; gap: 1.2rem 2.4rem; align-items: flex-start; }
.maps figure { padding: 0; border: 0; max-width: 100%; }
.maps .scroll { border: 0; margin: .3rem 0; background: none; border-radius: 0; }
.maps img { width: auto; max-width: none; margin: 0; }
figcaption { color: var(--soft); font-size: .84rem; line-height: 1.45; margin-bottom: .4rem; }
details { border: 1px solid var(--rule); border-radius: 8px; background: var(--card); padding: 0 1rem; margin: .7rem 0; }
details[open] { padding-bottom: .6rem; }
summary { cursor: pointer; padding: .65rem 0; font-size: .95rem; overflow-wrap: anywhere; }
.tag { font-size: .72rem; font-weight: 600; color: var(--accent); border: 1px solid currentColor; border-radius: 99px;
  padding: .05rem .5rem; margin-left: .4rem; vertical-align: .15em; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem 1.2rem; font-size: .86rem; line-height: 1.5;
  margin: .6rem 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.sample { border-left: 3px solid var(--rule); padding-left: 1rem; margin: 1.1rem 0; }
.sample dl { font-family: inherit; font-size: 1rem; margin: 0; }
.sample dt { font-size: .84rem; line-height: 1.9; font-family: system-ui, sans-serif; }
.sample dd.translation { font-weight: 600; }
footer { margin-top: 4rem; padding-bottom: 3rem; color: var(--soft); font-size: .84rem; }
summary small { color: var(--soft); font-size: .82rem; }
@media (max-width: 34rem) { .cards { grid-template-columns: 1fr 1fr; gap: .5rem; } .card { padding: .5rem .6rem; }
  .card .figure { font-size: 1.3rem; } th, td { padding: .4rem .5rem; } td:first-child, td.t:first-child { min-width: 6.5rem; max-width: 9.5rem; }
  .interval { min-width: 4.5rem; } td small { font-size: 11px; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dt { margin-top: .45rem; } figure { padding: .5rem; } }
@page { size: A4 landscape; margin: 12mm; }
@media print { :root { color-scheme: light; --paper: #fff; } nav { display: none; } .page { max-width: none; padding: 0; }
  body { display: block; font-size: 9.5pt; background: none; print-color-adjust: exact; } header { padding: 0; }
  h1 { font-size: 22pt; } h2 { font-size: 15pt; margin-top: 1.4rem; padding-top: .7rem; } h3 { margin-top: 1rem; }
  .cards { grid-template-columns: repeat(4, 1fr); gap: .5rem; } .card { padding: .45rem .6rem; } .card .figure { font-size: 15pt; }
  .scroll, details { overflow: visible; border: 0; border-radius: 0; background: none; } details { padding: 0; }
  table { font-size: 7.5pt; } th, td { padding: .2rem .25rem; white-space: normal; } thead { display: table-header-group; }
  th:first-child, td:first-child { position: static; min-width: 5rem; } td.t, td.t:first-child { min-width: 0; }
  th { min-width: 0; } .interval { min-width: 0; }
  .pictures { grid-template-columns: repeat(3, 1fr); gap: .6rem; } figure { padding: .4rem; } figure img { max-height: 10cm; }
  summary { list-style: none; font-weight: 600; } a { color: inherit; text-decoration: none; }
  details::details-content { content-visibility: visible; block-size: auto; }
  #attention, #curves details, #runs details > :not(summary) { display: none; }
  #runs details { margin: 0; } #runs summary { padding: .1rem 0; font-weight: 400; font-size: 8pt; }
  .sample { margin: .7rem 0; } .sample dl, .sample dt { font-size: 9pt; line-height: 1.45; gap: 0 1rem; } footer { margin: 1rem 0 0; padding: 0; }
  figure, .card, .scroll:not(:has(tbody tr:nth-child(13))), tr, .sample, dl { break-inside: avoid; } h2, h3, summary, thead { break-after: avoid; } .note { break-before: avoid; } }
"""
