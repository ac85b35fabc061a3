"""The wire between network namespaces: a TUN device in each, and between them what a test asks for.

Takes the names of namespaces that exist; the n-th gets 10.77.0.n. Commands, a line each, on standard input:
  block A B      nothing passes from A to B
  worse LOSS MS  so much of all packets is lost, and the others take so long
  heal           all as at the start
Each is answered with "done". Ends with its input, and the devices with it. Needs nothing but the kernel's TUN: netem and nft are not
everywhere.
"""

import fcntl
import heapq
import os
import random
import selectors
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN_WITHOUT_HEADER = 0x0001 | 0x1000
MOST_WAITING = 100_000


def device(number, namespace):
    name = f"hfw{os.getpid() % 100_000}-{number}"
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN_WITHOUT_HEADER))
    for command in [
        ["link", "set", name, "netns", namespace],
        ["-n", namespace, "addr", "add", f"10.77.0.{number}/24", "dev", name],
        ["-n", namespace, "link", "set", name, "up"],
        ["-n", namespace, "link", "set", "lo", "up"],
    ]:
        subprocess.run(["ip", *command], check=True)
    return tun


class Wire:
    def __init__(self, namespaces):
        self.tuns = {number: device(number, name) for number, name in enumerate(namespaces, 1)}
        self.waiting = []
        self.unfinished = b""
        self.heal()

    def heal(self):
        self.blocked, self.loss, self.delay = set(), 0.0, 0.0

    def obey(self, line):
        word, *rest = line.split()
        if word == "block":
            self.blocked.add((int(rest[0]), int(rest[1])))
        elif word == "worse":
            self.loss, self.delay = float(rest[0]), float(rest[1]) / 1000
        elif word == "heal":
            self.heal()
        else:
            raise ValueError(line)

    def take(self, number):
        while True:
            try:
                packet = os.read(self.tuns[number], 65_536)
            except BlockingIOError:
                return
            if len(packet) < 20 or packet[0] >> 4 != 4 or packet[16:19] != bytes([10, 77, 0]):
                continue
            to = packet[19]
            if to not in self.tuns or (number, to) in self.blocked or random.random() < self.loss:
                continue
            if self.delay == 0.0 and not self.waiting:
                self.put(to, packet)
            elif len(self.waiting) < MOST_WAITING:
                heapq.heappush(self.waiting, (time.monotonic() + self.delay, to, packet))

    def put(self, to, packet):
        try:
            os.write(self.tuns[to], packet)
        except OSError:
            pass  # A full queue loses packets, as a wire does.

    def run(self):
        selector = selectors.DefaultSelector()
        for number, tun in self.tuns.items():
            selector.register(tun, selectors.EVENT_READ, number)
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ, None)
        print("done", flush=True)
        while True:
            now = time.monotonic()
            while self.waiting and self.waiting[0][0] <= now:
                self.put(*heapq.heappop(self.waiting)[1:])
            limit = max(0.0, self.waiting[0][0] - now) if self.waiting else None
            for key, _ in selector.select(limit):
                if key.data is not None:
                    self.take(key.data)
                    continue
                said = os.read(sys.stdin.fileno(), 4_096)
                if not said:
                    return
                *commands, self.unfinished = (self.unfinished + said).split(b"\n")
                for command in commands:
                    self.obey(command.decode())
                    print("done", flush=True)


Wire(sys.argv[1:]).run()
