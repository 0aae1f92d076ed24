"""How the index page looks: one column, light and dark by the reader's choice, wide tables scroll in their own box."""

STYLE = """
:root { color-scheme: light dark; --paper: #fcfcfa; --ink: #23262b; --soft: #5d6470; --rule: #dfe1e4; --card: #ffffff;
  --accent: #1f5fae; --tint: #f1f4f8; --ours: #eaf2fb; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e2e5ea; --soft: #9aa3b0; --rule: #2c323a;
  --card: #1a1e23; --accent: #7fb2f0; --tint: #20262d; --ours: #1b2b3e; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 17px/1.6 Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif; }
main, header, footer { max-width: 86rem; margin: 0 auto; padding: 0 clamp(1rem, 4vw, 3rem); }
header { padding-top: clamp(1.5rem, 5vw, 4rem); }
h1 { font-size: clamp(1.8rem, 5vw, 2.9rem); line-height: 1.12; letter-spacing: -.015em; margin: 0 0 .6rem;
  text-wrap: balance; }
h2 { font-size: 1.5rem; line-height: 1.25; margin: 3.2rem 0 .5rem; padding-top: 1.3rem;
  border-top: 1px solid var(--rule); text-wrap: balance; }
h3 { font-size: 1.12rem; margin: 1.8rem 0 .4rem; overflow-wrap: anywhere; }
p { max-width: 44rem; margin: .5rem 0 1rem; }
a { color: var(--accent); text-underline-offset: .16em; text-decoration-thickness: 1px; }
.lede { font-size: 1.12rem; color: var(--soft); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; margin: 1.2rem 0 0; padding: 0; }
nav, table, figcaption, .note, dl, summary, .tag, footer { font-family: system-ui, "Segoe UI", Roboto, Helvetica, Arial,
  sans-serif; }
nav { font-size: .92rem; }
.scroll { overflow-x: auto; margin: .8rem 0; border: 1px solid var(--rule); border-radius: 8px;
  background: var(--card); }
.scroll:focus-visible, summary:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: separate; border-spacing: 0; font-size: .84rem; line-height: 1.35; width: 100%;
  font-variant-numeric: tabular-nums lining-nums; }
th, td { padding: .42rem .62rem; text-align: left; vertical-align: baseline; white-space: nowrap; }
th { vertical-align: bottom; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--rule);
  white-space: normal; min-width: 3.2rem; }
td.n, th.n { text-align: right; }
td.t { white-space: normal; min-width: 20rem; }
tr { background: var(--card); }
th:first-child, td:first-child { position: sticky; left: 0; background: inherit; }
tbody tr:nth-child(even) { background: var(--tint); }
tbody tr.ours { background: var(--ours); }
tbody tr.group td { border-top: 1px solid var(--rule); }
td small { display: block; color: var(--soft); font-size: .86em; }
td sup, th sub { line-height: 0; }
code { font: .82em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.note { color: var(--soft); font-size: .84rem; line-height: 1.5; max-width: 52rem; margin: .35rem 0; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 27rem), 1fr)); gap: 1rem;
  margin: 1rem 0; }
figure { margin: 0; padding: .8rem; border: 1px solid var(--rule); border-radius: 8px; background: var(--card);
  min-width: 0; }
figure img { display: block; width: 100%; max-width: 40rem; height: auto; margin: 0 auto; }
.maps { display: flex; flex-wrap: wrap; gap: 1.2rem 2.4rem; align-items: flex-start; }
.maps figure { padding: 0; border: 0; max-width: 100%; }
.maps .scroll { border: 0; margin: .3rem 0; background: none; border-radius: 0; }
.maps img { width: auto; max-width: none; margin: 0; }
figcaption { color: var(--soft); font-size: .84rem; line-height: 1.45; margin-bottom: .4rem; }
details { border: 1px solid var(--rule); border-radius: 8px; background: var(--card); padding: 0 1rem;
  margin: .7rem 0; }
details[open] { padding-bottom: .6rem; }
summary { cursor: pointer; padding: .65rem 0; font-size: .95rem; overflow-wrap: anywhere; }
.tag { font-size: .72rem; font-weight: 600; color: var(--accent); border: 1px solid currentColor; border-radius: 99px;
  padding: .05rem .5rem; margin-left: .4rem; vertical-align: .15em; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem 1.2rem; font-size: .86rem;
  line-height: 1.5; margin: .6rem 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.sample { border-left: 3px solid var(--rule); padding-left: 1rem; margin: 1.1rem 0; }
.sample dl { font-family: inherit; font-size: 1rem; margin: 0; }
.sample dt { font-size: .84rem; line-height: 1.9; font-family: system-ui, sans-serif; }
.sample dd.translation { font-weight: 600; }
footer { margin-top: 4rem; padding-bottom: 3rem; color: var(--soft); font-size: .84rem; }
@media (max-width: 34rem) { body { font-size: 16px; } th, td { padding: .4rem .55rem; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; } dt { margin-top: .45rem; } figure { padding: .5rem; } }
@media print { details { display: block; } .scroll { overflow: visible; } }
"""
