#!/usr/bin/env python3
"""Every attack in its whole size, on a server in a memory cgroup of 1 GB whose log nobody reads: `make attacks`, or whole_sizes.py
build/release/pagoda.

Prints a row for each: what was answered, how long it took, the most memory that was resident meanwhile over what is at rest, and
of a stream beside it the p99 of the gaps between its tokens and what that may be: twice the longest gap before the attack and 20
ms. Where the attack asks for answers too, the gaps before it are those beside clients that ask for the same answers honestly; the
row says so. With clients that push themselves in front of others, it also has how long a newcomer waits for a first token.

Exits 1 unless the server lives, answers only as each attack is to be answered, never has more than 300 MB over what it has at
rest, always answers /health, and keeps no stream waiting longer than that (in the median of three where it does in the first).
The attackers are processes of their own.
"""

import argparse
import collections
import contextlib
import json
import multiprocessing
import os
import pathlib
import random
import re
import selectors
import subprocess
import sys
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent.parent / "bench"), str(HERE.parent)]
import attack_requests  # noqa: E402
import attackers  # noqa: E402
import kept_attacks  # noqa: E402
from full_pipe import FullPipe  # noqa: E402
from prompt_among_decodes import Stream, percentile, receive_for, receive_until  # noqa: E402
from running_server import RunningServer, free_port  # noqa: E402
from text_beside_streams import ALLOWED_FACTOR, ALLOWED_MORE_S, gaps  # noqa: E402

ALLOWED_BYTES = 300e6
CGROUP_BYTES = 10**9
KV_BYTES = 256 << 20  # the same with and without a cgroup, and soon filled
STREAM_LEN = 6000  # tokens
NUM_STEPS_PER_TURN = 1024  # of overtaking (engine/scheduler.h)
HEALTH_PAUSE_S = 0.05
SETTLE_S = 1
PROMPT_LEN = 1000  # of what fills the KV cache
GIVEN_BACK_S = 12  # twice as long as a server at rest keeps what was freed, and more
WAITED = "the stream waited too long"
JOIN = ["sh", "-c", 'echo $$ > "$0" && exec "$@"']  # joins the cgroup of a cgroup.procs and becomes the command after it


def new_cgroup():
    """The folder of a new memory cgroup of 1 GB that processes may join, of either version; None where we may have none."""
    lines = pathlib.Path("/proc/self/cgroup").read_text().splitlines()
    own = {names: path.strip("/") for _, names, path in (line.split(":", 2) for line in lines)}
    mount = pathlib.Path("/sys/fs/cgroup")
    second = mount / own.get("", "")
    for parent, limit in ((mount / "memory" / own.get("memory", ""), "memory.limit_in_bytes"),
                          (mount / "memory", "memory.limit_in_bytes"),
                          (second, "memory.max"), (second.parent, "memory.max"), (mount, "memory.max")):
        folder = parent / f"pagoda-attacks-{os.getpid()}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            if (folder / limit).exists():
                (folder / limit).write_text(str(CGROUP_BYTES))
                if subprocess.run([*JOIN, folder / "cgroup.procs", "true"], capture_output=True, check=False).returncode == 0:
                    return folder
        with contextlib.suppress(OSError):
            folder.rmdir()
    return None


def attack_until(enough, prepare, port, ready, begin, results):
    """A process: rounds of the attack from `begin` on, one at least."""
    send = prepare()
    ready.release()
    begin.wait()
    statuses, problems = collections.Counter(), set()
    while True:
        sent = send(port)
        statuses.update(sent.statuses)
        problems.update(sent.problems)
        if enough.is_set():
            break
    results.put((statuses, problems))


def ask_health_until(enough, port, results):
    """A process: /health over and over."""
    slowest, problems = 0, set()
    while not enough.is_set():
        start = time.perf_counter()
        status, _ = attackers.exchange(port, "/health", None)
        slowest = max(slowest, time.perf_counter() - start)
        if status != 200:
            problems.add(f"/health was answered {status}")
        time.sleep(HEALTH_PAUSE_S)
    results.put((slowest, problems))


class Processes:
    """As many of one kind as wanted, which end by themselves once `enough` is set; each puts one result."""

    def __init__(self, target, count, *arguments):
        self.enough = multiprocessing.Event()
        self._results = multiprocessing.SimpleQueue()
        self._processes = [multiprocessing.Process(target=target, args=(self.enough, *arguments, self._results), daemon=True)
                           for _ in range(count)]
        for process in self._processes:
            process.start()

    def have_ended(self):
        return all(process.exitcode is not None for process in self._processes)

    def results(self):
        return [self._results.get() for process in self._processes if process.exitcode == 0]

    def kill(self):
        for process in self._processes:
            process.kill()
            process.join()


class Server:
    """A running server as its process shows itself."""

    def __init__(self, process, port):
        self.process, self.port = process, port
        self._folder = pathlib.Path(f"/proc/{process.pid}")
        self.rest_bytes = 0

    def is_alive(self):
        return self.process.poll() is None

    def forget_peak(self):
        (self._folder / "clear_refs").write_text("5")

    def peak_bytes(self):
        """Since it was forgotten; 0 once the process has ended."""
        found = re.search(r"^VmHWM:\s+(\d+)", (self._folder / "status").read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else 0

    def come_to_rest(self):
        """Uses every KV block and each kind of work once: what is never used is never resident."""
        text = attackers.exchange(self.port, "/metrics", None)[1].decode()
        num_blocks = int(float(re.search(r"^pagoda:num_kv_blocks{.*} (\S+)$", text, re.MULTILINE)[1]))
        draw = random.Random(20261123)
        for _ in range(num_blocks * 16 // PROMPT_LEN + 1):
            prompt = [draw.randrange(100, 30_000) for _ in range(PROMPT_LEN)]
            attackers.exchange(self.port, "/v1/completions", json.dumps({"prompt": prompt, "max_tokens": 1}).encode())
        for chat in attack_requests.HONEST_CHATS:
            attackers.exchange(self.port, "/v1/chat/completions", json.dumps(chat).encode())
        self.forget_peak()
        self.rest_bytes = self.peak_bytes()

    def kept_bytes(self):
        """What is resident over that once the server has had nothing to do for a while."""
        time.sleep(GIVEN_BACK_S)
        self.forget_peak()
        return self.peak_bytes() - self.rest_bytes


class Beside(NamedTuple):
    """What went on while an attack did."""
    begin: float
    end: float
    sent: list  # (statuses, problems) of each client
    health: tuple  # (slowest, problems)
    newcomer_s: float


class Measurement:
    """One attack beside a stream."""

    def __init__(self, flags, server, attack):
        self.flags, self.server, self.attack = flags, server, attack
        self.selector = selectors.DefaultSelector()
        self.stream = Stream(server.port, list(range(100, 164)), STREAM_LEN)
        self.selector.register(self.stream.socket, selectors.EVENT_READ, self.stream)
        receive_until(self.selector, lambda: self.stream.received)

    def clients(self, prepare):
        """Started, and through with making what they send; they send it at the event."""
        ready, begin = multiprocessing.Semaphore(0), multiprocessing.Event()
        clients = Processes(attack_until, self.attack.num_clients, prepare, self.server.port, ready, begin)
        for _ in range(self.attack.num_clients):
            receive_until(self.selector, lambda: ready.acquire(block=False) or clients.have_ended())
        return clients, begin

    def newcomer_s(self):
        """How long a request that comes now waits for its first token; 0 where nobody comes."""
        if not self.attack.has_newcomer:
            return 0
        newcomer = Stream(self.server.port, list(range(200, 264)), 1)
        self.selector.register(newcomer.socket, selectors.EVENT_READ, newcomer)
        receive_until(self.selector, newcomer.token_times)
        with contextlib.suppress(KeyError):  # it may have been read to its end
            self.selector.unregister(newcomer.socket)
        newcomer.socket.close()
        return newcomer.token_times()[0] - newcomer.sent_at

    def before(self):
        """The stream's gaps alone, or in the attack's company, and how long a newcomer waits there."""
        begin = time.perf_counter()
        if not self.attack.company:
            receive_for(self.selector, self.flags.alone_s)
            return gaps(self.stream, begin, time.perf_counter()), 0
        company, start = self.clients(self.attack.company)
        begin = time.perf_counter()
        start.set()
        receive_for(self.selector, self.flags.beside_s)
        newcomer_s = self.newcomer_s()
        end = time.perf_counter()
        company.kill()
        receive_for(self.selector, SETTLE_S)
        return gaps(self.stream, begin, end), newcomer_s

    def beside(self):
        clients, start = self.clients(self.attack.prepare)
        health = Processes(ask_health_until, 1, self.server.port)
        self.server.forget_peak()
        begin = time.perf_counter()
        start.set()
        receive_for(self.selector, self.flags.beside_s)
        newcomer_s = self.newcomer_s()
        clients.enough.set()
        receive_until(self.selector, clients.have_ended)
        end = time.perf_counter()
        health.enough.set()
        receive_for(self.selector, SETTLE_S)  # a gap that began beside the attack ends
        receive_until(self.selector, health.have_ended)
        self.stream.socket.close()
        return Beside(begin, end, clients.results(), health.results()[0], newcomer_s)

    def row(self):
        """What came of it, and in words what does not hold."""
        before, usual_s = self.before()
        beside = self.beside()
        statuses = sum((counts for counts, _ in beside.sent), collections.Counter())
        extra_bytes = self.server.peak_bytes() - self.server.rest_bytes
        problems = self.problems(beside, statuses, extra_bytes)
        p99_s, allowed_s = self.p99_and_allowed(before, gaps(self.stream, beside.begin, beside.end), problems)
        name = self.attack.name
        if self.attack.company:
            name += f" (beside {self.attack.company_name} before)"
        if beside.newcomer_s:
            allowed_newcomer_s = ALLOWED_FACTOR * usual_s + NUM_STEPS_PER_TURN * p99_s
            name += (f"; a newcomer's first token after {beside.newcomer_s:.1f} s, at most {allowed_newcomer_s:.1f}, "
                     f"before {usual_s:.1f}")
            if beside.newcomer_s > allowed_newcomer_s:
                problems.append("the newcomer waited too long")
        answered = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items(), key=str))
        return [name, answered, f"{beside.end - beside.begin:.1f}", f"{extra_bytes / 1e6:.0f}", f"{1e3 * p99_s:.1f}",
                f"{1e3 * allowed_s:.1f}", f"{1e3 * beside.health[0]:.1f}"], problems

    def problems(self, beside, statuses, extra_bytes):
        found = sorted(beside.health[1].union(*(words for _, words in beside.sent)))
        if len(beside.sent) < self.attack.num_clients:
            found.append("an attacker failed: see its error above")
        wrong = sorted({str(status) for status in statuses} - {str(status) for status in self.attack.statuses})
        if wrong:
            found.append(f"expected {' or '.join(map(str, sorted(self.attack.statuses)))}, got {', '.join(wrong)}")
        if extra_bytes > ALLOWED_BYTES:
            found.append("too much memory")
        if b'"error"' in self.stream.text():
            found.append("the stream ended with an error")
        return found

    def p99_and_allowed(self, before, beside, problems):
        if not before or not beside:
            problems.append("the stream ended before the attack did anything")
            return 0, 0
        p99_s, allowed_s = percentile(beside, 0.99), ALLOWED_FACTOR * max(before) + ALLOWED_MORE_S
        if p99_s > allowed_s:
            problems.append(f"{WAITED}, {1e3 * max(beside):.0f} ms at most")
        return p99_s, allowed_s


def median_row(flags, server, attack):
    """The row, and what does not hold. Six seconds have some eighty gaps, whose p99 is the longest: one stall of the machine. So
    where the stream waited too long it is measured twice more, and of that the median counts; of the rest, whatever was wrong."""
    rows = [Measurement(flags, server, attack).row()]
    if any(problem.startswith(WAITED) for problem in rows[0][1]):
        rows += [Measurement(flags, server, attack).row() for _ in range(2)]
    has_waited = [any(problem.startswith(WAITED) for problem in problems) for _, problems in rows]
    ranked = sorted(range(len(rows)), key=lambda i: (has_waited[i], float(rows[i][0][4])))
    median, problems = rows[ranked[len(rows) // 2]]
    problems = problems + [problem for _, others in rows for problem in others
                           if not problem.startswith(WAITED) and problem not in problems]
    if len(rows) > 1:
        times = ", ".join(f"{row[4]} of {row[5]}" for row, _ in rows)
        median = [f"{median[0]}; the median of {times}", *median[1:]]
    return median, problems


def measure(flags, server):
    """A row for each attack; the number of attacks beside which something did not hold."""
    num_wrong = 0
    for attack in [*attackers.ATTACKS, *kept_attacks.ATTACKS]:
        if not re.search(flags.only, attack.name):
            continue
        try:
            row, problems = median_row(flags, server, attack)
        except OSError as error:
            row, problems = [attack.name, "", "", "", "", "", ""], [str(error)]
        if not server.is_alive():
            problems.append(f"the server ended with {server.process.returncode}")
        print("| " + " | ".join([*row, "; ".join(problems) or "yes"]) + " |", flush=True)
        num_wrong += bool(problems)
        if not server.is_alive():
            break
    return num_wrong


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pagoda", help="the binary")
    parser.add_argument("--model", default="smollm2", help="of a vocabulary of 30,000 tokens or more, and a context of 8,192")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--alone-s", type=float, default=6, help="how long a stream runs before an attack")
    parser.add_argument("--beside-s", type=float, default=6, help="how long an attack is repeated; it ends when it is through")
    parser.add_argument("--only", default="", help="attacks whose names this regular expression is found in")
    return parser.parse_args()


def main():
    flags = parse_flags()
    cgroup = new_cgroup()
    if not cgroup:
        print("This system grants no memory cgroup: the server runs without one.", flush=True)
    port = free_port()
    command = [flags.pagoda, "serve", flags.model, "--device", "cpu", "--threads", flags.threads, "--port", port,
               "--kv-cache-memory-bytes", KV_BYTES, "--shutdown-timeout", 0]
    with contextlib.ExitStack() as stack:
        if cgroup:
            stack.callback(cgroup.rmdir)
            command = [*JOIN, cgroup / "cgroup.procs", *command]
        try:
            log = stack.enter_context(FullPipe())
            running = stack.enter_context(RunningServer(command, port, log.path))
            server = Server(running.process, port)
            server.come_to_rest()
            print(f"At rest {server.rest_bytes / 1e6:.0f} MB are resident.\n", flush=True)
            print("| attack | answered | s | memory over rest, MB | stream's p99, ms | allowed | /health's slowest, ms | holds |")
            print("|" + "---|" * 8, flush=True)
            num_wrong = measure(flags, server)
            if server.is_alive():
                print(f"\nAfter {GIVEN_BACK_S} s without a request {server.kept_bytes() / 1e6:.0f} MB over rest are resident.")
        except (OSError, subprocess.TimeoutExpired) as error:
            sys.exit(f"whole_sizes: {error}")
    sys.exit(1 if num_wrong else 0)


if __name__ == "__main__":
    main()
