"""Throughput and latency of the server with 1 and 16 clients, compared with the same server around CTranslate2.

    python -m benchmarks.serving models/multi30k-small/average data/sets/multi30k-test/normalised.en

Each client sends one sentence, waits for its translation and sends the next. The server is a process of its own. The
clients are threads of this process, on the same machine. Prints sentences per second, the ratio to those with one client,
and the 50th and 99th percentile of the time of a request. Both systems get the same precision and --threads. CTranslate2
uses all these threads for a batch, ours threads // min(threads, 4): one of the default two.
"""

import argparse
import http.client
import json
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from pipeline.commands.export import write_ctranslate2
from pipeline.corpora.evaluation import read_lines
from pipeline.serving.application import LIMITS, application
from pipeline.serving.batching import TranslatorEngine
from pipeline.serving.running import listening, serve
from pipeline.workflow import stage
from pipeline.workflow.hardware import processor
from transformer.config.reading import UserError
from transformer.translator import Hypothesis, Translator

CLIENTS = (1, 16)


class CTranslate2Engine(TranslatorEngine):
    """CTranslate2 with the weights, the vocabulary and the beam of `translator`, without its length penalty."""

    def __init__(self, translator: Translator, folder: Path) -> None:
        """`folder` is the model folder of `translator`."""
        import ctranslate2

        super().__init__(translator)
        with tempfile.TemporaryDirectory() as out:
            write_ctranslate2(translator.model, folder / "vocabulary.model", Path(out))
            self.peer = ctranslate2.Translator(
                out, compute_type=translator.config.precision, intra_threads=translator.config.threads
            )

    def translations(self, texts: list[str], n_best: int) -> list[list[Hypothesis]]:
        vocabulary = self.translator.vocabulary
        sources = [vocabulary.pieces(ids) for ids in self.translator.encode(self.translator.normalise(texts))]
        found = self.peer.translate_batch(
            sources,
            beam_size=self.beam,
            num_hypotheses=n_best,
            length_penalty=0.0,
            max_decoding_length=max(map(len, sources)) + self.translator.config.extra_length,
            return_scores=True,
        )
        return [
            [
                Hypothesis(vocabulary.processor.DecodePieces(pieces), score, [], [])
                for pieces, score in zip(each.hypotheses, each.scores)
            ]
            for each in found
        ]


SYSTEMS = ("ours", "CTranslate2")


def run_server(system: str, folder: Path, precision: str, threads: int, port: Connection) -> None:
    """Serve in this process, and send the port's number through `port`."""
    translator = Translator.load(folder, "cpu", precision, threads=threads)
    engine = TranslatorEngine(translator) if system == "ours" else CTranslate2Engine(translator, folder)
    engine.translations(["a"], 1)
    listener = listening("127.0.0.1", 0)
    port.send(listener.getsockname()[1])
    serve(application(engine, None, LIMITS), listener, LIMITS)


@contextmanager
def server(*arguments: object) -> Iterator[int]:
    """The port of a server that runs during the block."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=run_server, args=(*arguments, sending))
    process.start()
    sending.close()
    try:
        yield receiving.recv()
    except EOFError:
        raise UserError("the server did not start; its error is above") from None
    finally:
        if process.is_alive():
            os.kill(process.pid or 0, signal.SIGTERM)
        process.join()


def load(port: int, texts: list[str], clients: int) -> tuple[float, list[float]]:
    """The seconds in which `clients` translate `texts`, and the seconds of each request."""
    waiting, times, lock = iter(texts), list[float](), threading.Lock()

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            with lock:
                text = next(waiting, None)
            if text is None:
                return connection.close()
            started = time.perf_counter()
            connection.request("POST", "/translate", json.dumps({"text": text}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise UserError(f"{answer.status}: {content.decode()}")
            times.append(time.perf_counter() - started)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(times) != len(texts):
        raise UserError("requests failed; the errors are above")
    return time.perf_counter() - started, times


def rows(system: str, port: int, texts: list[str]) -> Iterator[str]:
    load(port, texts[:32], max(CLIENTS))  # a warm-up
    first = 0.0
    for clients in CLIENTS:
        seconds, times = load(port, texts, clients)
        speed = len(texts) / seconds
        first = first or speed
        p50, p99 = 1000 * np.percentile(times, (50, 99))
        yield f"| {system} | {clients} | {speed:.1f} | {speed / first:.2f} | {p50:.0f} | {p99:.0f} |"


def main(arguments: argparse.Namespace) -> None:
    texts = [line for line in read_lines(arguments.text)[: arguments.sentences] if line]
    print(f"{processor()}, {arguments.threads} threads, {arguments.precision}\n")
    print("| system | clients | sentences/s | ratio | p50 ms | p99 ms |\n|---|---:|---:|---:|---:|---:|", flush=True)
    for system in SYSTEMS:
        with server(system, arguments.model, arguments.precision, arguments.threads) as port:
            for row in rows(system, port, texts):
                print(row, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.serving", description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path, help="a model folder, as written by average")
    parser.add_argument("text", type=Path, help="a file of source lines")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    stage.run(main, parser, checked=False)
