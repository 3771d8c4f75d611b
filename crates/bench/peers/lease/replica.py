"""A replica: a process that says when it takes itself for the leader, over its restarts."""

import json
import os
import signal
import subprocess
import threading
import time

# Samples this far apart belong to one time of leading.
GAP = 0.15
SAMPLE = 0.02


class Replica:
    def __init__(self, setup, subject, lease, letter, write=False, shift=None):
        self.setup, self.subject, self.lease = setup, subject, lease
        self.name = f"{lease}-{letter}"
        self.write, self.shift = write, shift
        self.link = setup.network.link(setup.host, setup.port)
        self.samples = []
        self.starts = 0
        self.ends = []
        self.start()

    def start(self):
        self.starts += 1
        # A restarted program does not take itself for the one before it.
        name = self.name if self.starts == 1 else f"{self.name}-{self.starts}"
        config = os.path.join(self.setup.folder, f"{self.name}.kubeconfig")
        with open(config, "w") as file:
            json.dump(self.setup.kubeconfig(self.link.port), file)
        environment = {**os.environ, "KUBECONFIG": config, "LEASE": self.lease}
        if self.write:
            environment["WRITE"] = "1"
        if self.shift is not None:
            environment |= {"LD_PRELOAD": self.setup.clock, "WALL_SHIFT": str(self.shift)}
        log = open(os.path.join(self.setup.folder, f"{self.name}.log"), "a")
        self.process = subprocess.Popen(
            [self.setup.program, self.subject, name], env=environment, stdout=subprocess.PIPE, stderr=log, text=True
        )
        self.process.is_last = False
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def _read(self, process):
        for line in process.stdout:
            self.samples.append(float(line.split()[1]))
        process.wait()
        self.ends.append(time.monotonic())
        # As a kubelet does.
        time.sleep(1)
        if not process.is_last:
            self.start()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        self.process.is_last = True
        for number in (signal.SIGCONT, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)

    def leads(self):
        return bool(self.samples) and time.monotonic() - self.samples[-1] < GAP

    def first_after(self, moment):
        return next((at for at in list(self.samples) if at > moment), None)

    def terms(self):
        """The times of leading, as pairs of the first and the last moment."""
        terms = []
        for at in list(self.samples):
            if terms and at - terms[-1][1] <= GAP:
                terms[-1][1] = at + SAMPLE
            else:
                terms.append([at, at + SAMPLE])
        return terms
