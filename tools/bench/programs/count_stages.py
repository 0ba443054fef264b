"""Counts every version of every cut of the tick; what files are there, cuts.json says."""

import gc
import json
import sys

import uctypes
from counting import Counter, code
from scenario import memory

with open("cuts.json") as file:
    asked = json.load(file)


def load(name):
    module = __import__(name)
    del sys.modules[name]
    return module.tick


def after(block, result):
    """What a kernel has left: its result, and all memory it can reach."""
    return [result, bytes(block).hex()]


block = memory(asked["velocity_source"])
at = uctypes.addressof(block)
counter = Counter(block)
rows = []
for cut in range(asked["cuts"]):
    row = {}
    with open("peer_%d.bin" % cut, "rb") as file:
        machine_code = bytearray(file.read())
    row["c"] = counter.native(code(machine_code), (at, 0, 0, 0))
    row["c_left"] = after(block, counter.result)
    del machine_code
    gc.collect()
    for name in ("viper", "armv6m"):
        viper = load("%s_%d" % (name, cut))
        row[name + "_called"] = counter.called(viper, block)
        row[name + "_left"] = after(block, counter.once(viper, at))
        del viper
        gc.collect()
    rows.append(row)
with open("counts.json", "w") as file:
    json.dump(rows, file)
