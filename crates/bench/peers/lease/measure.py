"""Measures leader election by several crates: requests, take-over times, and how long two take themselves for leaders.

Usage: measure.py PROGRAM CLOCK_SO URL [--only NAME,NAME…] [--rounds 3] [--genuine KUBECONFIG]

PROGRAM is this package's, URL the address of `lariat cluster --admin`. With --genuine, the take-over times are measured
on the cluster of that file instead, which is reached over the same links. Results are printed as JSON lines.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from network import DROP, HOLD, OPEN, Network
from replica import Replica

# The subjects, and the seconds between renewals.
PERIODS = {"lariat": 2, "kube-lease-manager": 10, "kube-leader-election": 5, "kubert": 14}
TAKE_OVERS = 5


class Setup:
    def __init__(self, options):
        self.program, self.clock = options.program, os.path.abspath(options.clock)
        self.network = Network()
        self.folder = tempfile.mkdtemp(prefix="leases-")
        self.base = json.loads(options.genuine and self._view(options.genuine) or "null")
        url = urllib.parse.urlsplit(self.base["clusters"][0]["cluster"]["server"] if self.base else options.url)
        self.url, self.host, self.port = options.url, url.hostname, url.port

    def _view(self, path):
        command = ["kubectl", "--kubeconfig", path, "config", "view", "--raw", "--minify", "-o", "json"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def kubeconfig(self, port):
        if self.base:
            config = json.loads(json.dumps(self.base))
            config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
            return config
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        }

    def request(self, method, path, body=None, agent="measure"):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "User-Agent": agent}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def journal(self, client):
        return self.request("GET", "/lariat/journal?" + urllib.parse.urlencode({"client": client}))["items"]

    def journal_offset(self):
        """The difference between the monotonic clock and the journal's."""
        agent = f"offset-{random.random()}"
        before = time.monotonic()
        self.request("GET", "/version", agent=agent)
        middle = (before + time.monotonic()) / 2
        return middle - self.journal(agent)[0]["seconds"]

    def create_config_map(self, name):
        path = "/api/v1/namespaces/default/configmaps"
        self.request("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})


def wait_until(condition, timeout):
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Pair:
    """Two replicas of a subject, the first of which leads."""

    def __init__(self, setup, subject, what, write=False, shift=None):
        self.setup, self.subject = setup, subject
        self.lease = f"{subject}-{what}-{random.randrange(10**6)}"
        if write:
            setup.create_config_map(self.lease)
        self.a = Replica(setup, subject, self.lease, "a", write, shift)
        assert wait_until(self.a.leads, 60), f"{self.lease}: the first replica does not lead"
        # Neither is always the next to look at the lease.
        time.sleep(random.uniform(0, PERIODS[subject]))
        self.b = Replica(setup, subject, self.lease, "b", write)
        self.began = time.monotonic()

    def stop(self):
        self.a.stop()
        self.b.stop()

    def settle(self):
        """Waits for a random time, so that a fault meets any phase of the renewals alike."""
        time.sleep(6 + random.uniform(0, PERIODS[self.subject]))

    def overlap(self, begin, end):
        """How long both took themselves for the leader, and how long neither did."""
        clip = lambda terms: [(max(f, begin), min(t, end)) for f, t in terms if t > begin and f < end]
        a, b = clip(self.a.terms()), clip(self.b.terms())
        both = sum(max(0, min(t, v) - max(f, u)) for f, t in a for u, v in b)
        either = sum(t - f for f, t in a + b) - both
        return both, end - begin - either

    def stale_writes(self):
        """Counts the committed writes of one replica after the other had come to lead."""
        offset, count = self.setup.journal_offset(), 0
        for one, other in ((self.a, self.b), (self.b, self.a)):
            own = one.terms()
            for write in self.setup.journal(one.name):
                at = write["seconds"] + offset
                if write["resource"] != "configmaps" or write["code"] != 200:
                    continue
                since = max((f for f, _ in own if f <= at + 0.1), default=0)
                count += any(since < f < at <= t for f, t in other.terms())
        return count


def rest(setup, subject, _):
    pair = Pair(setup, subject, "rest")
    time.sleep(20)
    agents = [pair.a.name, pair.b.name]
    before = [len(setup.journal(agent)) for agent in agents]
    time.sleep(120)
    after = [len(setup.journal(agent)) for agent in agents]
    leads = pair.a.leads()
    verbs = [sorted({item["verb"] for item in setup.journal(agent)[n:]}) for agent, n in zip(agents, before)]
    pair.stop()
    minute = [(new - old) / 2 for old, new in zip(before, after)]
    return {"leader": minute[0], "standby": minute[1], "verbs": verbs, "still_leads": leads}


def take_over(number):
    def measure(setup, subject, what):
        pair, times, overlaps = Pair(setup, subject, what), [], []
        leader, standby = pair.a, pair.b
        for _ in range(TAKE_OVERS):
            pair.settle()
            assert leader.leads(), f"{pair.lease}: the leader has changed by itself"
            # The next process of the former leader is not part of this: it comes when the other leads.
            leader.process.is_last = True
            at = time.monotonic()
            leader.signal(number)
            if not wait_until(lambda: standby.first_after(at), 120):
                times.append(None)
                break
            times.append(standby.first_after(at) - at)
            leader.process.wait()
            time.sleep(0.2)
            overlaps.append(pair.overlap(at, time.monotonic())[0])
            time.sleep(random.uniform(0, PERIODS[subject]))
            leader.start()
            leader, standby = standby, leader
        pair.stop()
        known = [it for it in times if it is not None]
        return {"times": times, "median": statistics.median(known), "min": min(known), "max": max(known),
                "overlap": max(overlaps)}

    return measure


def fault(window, harm, write=True):
    def measure(setup, subject, what):
        pair = Pair(setup, subject, what, write)
        pair.settle()
        begin = time.monotonic()
        harm(pair)
        time.sleep(max(0, begin + window - time.monotonic()))
        return outcome(pair, begin, begin + window)

    return measure


def outcome(pair, begin, end, **more):
    both, neither = pair.overlap(begin, end)
    stale = pair.stale_writes()
    ends = [len(pair.a.ends), len(pair.b.ends)]
    relative = lambda terms: [[round(f - begin, 2), round(t - begin, 2)] for f, t in terms]
    pair.stop()
    return {"overlap": both, "none": neither, "stale_writes": stale, "window": end - begin,
            "terms": [relative(pair.a.terms()), relative(pair.b.terms())],
            "ends": ends, **more}


def pause(pair):
    pair.a.signal(signal.SIGSTOP)
    time.sleep(25)
    pair.a.signal(signal.SIGCONT)


def cut(state, seconds, both=False):
    def harm(pair):
        links = [pair.a.link, pair.b.link] if both else [pair.a.link]
        for link in links:
            link.set(state)
        time.sleep(seconds)
        for link in links:
            link.set(OPEN)

    return harm


def delete(pair):
    path = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{pair.lease}"
    pair.setup.request("DELETE", path)


def clock(shift):
    """The clock of the first leader is wrong from its start on; after 60 s it crashes."""

    def measure(setup, subject, what):
        pair = Pair(setup, subject, what, True, shift)
        begin = pair.began
        time.sleep(60)
        end = time.monotonic()
        more = {}
        if pair.a.leads() and not pair.b.leads():
            pair.a.stop()
            at = time.monotonic()
            wait_until(lambda: pair.b.first_after(at), 120)
            more["crash"] = (pair.b.first_after(at) or float("inf")) - at
        return outcome(pair, begin, end, **more)

    return measure


REST = {
    "rest": rest,
    "release": take_over(signal.SIGTERM),
    "crash": take_over(signal.SIGKILL),
}
FAULTS = {
    "pause": fault(60, pause),
    "partition-lost": fault(75, cut(DROP, 40)),
    # Shorter than the time after which a server closes a connection on which nothing comes.
    "partition-held": fault(60, cut(HOLD, 25)),
    "silent": fault(60, cut(HOLD, 20, both=True)),
    "deleted": fault(45, delete),
    "clock-ahead": clock(60),
    "clock-behind": clock(-60),
}


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "clock", "url"):
        parser.add_argument(name)
    parser.add_argument("--only", default=",".join([*REST, *FAULTS]))
    parser.add_argument("--subjects", default=",".join(PERIODS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--genuine")
    options = parser.parse_args()
    setup, lock = Setup(options), threading.Lock()

    def run(what, measure, subject, turn):
        time.sleep(random.uniform(0, 4))
        load = os.getloadavg()[0]
        try:
            result = measure(setup, subject, what)
        except Exception as error:  # One run that fails leaves the others alone.
            result = {"error": repr(error)}
        line = {"what": what, "subject": subject, "round": turn, "load": [load, os.getloadavg()[0]], **result}
        with lock:
            print(json.dumps(line), flush=True)

    def together(runs):
        threads = [threading.Thread(target=run, args=it) for it in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    only, subjects = options.only.split(","), options.subjects.split(",")
    for turn in range(1, options.rounds + 1):
        for measures in (REST, FAULTS):
            together((what, measures[what], it, turn) for what in only if what in measures for it in subjects)


if __name__ == "__main__":
    main()
