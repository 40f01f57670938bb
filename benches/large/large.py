#!/usr/bin/env python3
"""Measures commands on a file that is larger than memory.

    benches/large/large.py [--objects N] [--warm] [--only PART] PROGRAM DIRECTORY [JOB…]

Makes DIRECTORY/plain.osm.pbf with `synth` (1.4 billion objects by default: 25.5 GB), unless it is there, and its
changes of a day. Runs each job of the table, or those that are named, with an empty page cache, and with --warm a second
time. Prints for each run: wall time, cpu time of the user and of the kernel in seconds; the maxima of anonymous memory
and of resident memory, which includes mapped files, in MB; the GB that the disk read and wrote; and the seconds for
each GB of the input.

The parts: `plain` needs room for a second copy of the file; `located` first makes DIRECTORY/located.osm.pbf, with
locations in ways, which takes 1.5 times as much room, and scratch space beside it; `shared` makes an xfs file system in
DIRECTORY/xfs.img and mounts it, as root, and removes plain.osm.pbf from DIRECTORY when its copy is there. Outputs are
removed after each job.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time

# Per part and job: the arguments. {in} is the file of the part, {day} the changes of a day, {minute} a change file with
# the first changes of the day, {next} a file after the day, {regions} a configuration of 200 regions, {out} a file and
# {dir} a directory that do not exist.
JOBS = {
    "plain": {
        "inspect": "inspect {in}",
        "getid": "getid {in} n1 n600003193 w1 r1 -o {out}",
        "getparents": "getparents {in} n1 n600003193 w1 r1 -o {out}",
        "check --refs": "check --refs {in}",
        "check --ids": "check --ids {in}",
        "extract, one town": "extract -b {town} {in} -o {out}",
        "extract -s smart, one town": "extract -s smart -b {town} {in} -o {out}",
        "extract, 200 regions": "extract -c {regions} {in}",
        "tags-filter -R w/highway=primary": "tags-filter -R {in} w/highway=primary -o {out}",
        "tags-filter w/highway=primary": "tags-filter {in} w/highway=primary -o {out}",
        "inspect tags": "inspect tags {in}",
        "sort, a copy": "sort {in} -o {out}",
        "augmented-diff, a day": "augmented-diff {in} {day} -o {dir}.adiff",
        "apply-changes, a day": "apply-changes {in} {day} -o {out}",
        "renumber": "renumber {in} -o {out}",
        "build-geocode-index": "build-geocode-index {in} --output-dir {dir}",
        "export to GeoJSON, discarded": "export {in} -f geojsonseq -O -o /dev/null",
        "export to GeoParquet, primary roads": "export {in} --filter w/highway=primary -f geoparquet -o {dir}.parquet",
    },
    "located": {
        "extract, one town": "extract -b {town} {in} -o {out}",
        "augmented-diff, a day": "augmented-diff {in} {day} -o {dir}.adiff",
        "build-geocode-index": "build-geocode-index {in} --output-dir {dir}",
        "export to GeoJSON, discarded": "export {in} -f geojsonseq -O -o /dev/null",
    },
    "shared": {
        "sort, blocks shared": "sort {in} -o {out}",
        "apply-changes, a day, blocks shared": "apply-changes {in} {day} -o {out}",
        "diff with the next day": "diff -c {in} {next}",
        "apply-changes --in-place, a minute": "apply-changes --in-place {next} {minute}",
    },
}
# The side of a town in degrees, and the number of regions.
TOWN, REGIONS = 0.02, 200
MINUTE_CHANGES = 6500


def capture(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as file:
        file.write("3\n")


def value_of(path, name):
    """The number after `name:` in a file of /proc, or 0."""
    try:
        with open(path) as file:
            lines = [line.split() for line in file if line.startswith(name + ":")]
    except OSError:
        return 0
    return int(lines[0][1]) if lines else 0


def measure(command):
    """Runs a command. Returns its figures."""
    maxima, is_over = {"RssAnon": 0, "VmHWM": 0}, threading.Event()
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    status = f"/proc/{process.pid}/status"

    def watch():
        while not is_over.wait(0.05):
            for name in maxima:
                maxima[name] = max(maxima[name], value_of(status, name))

    def drain():
        nonlocal said
        said = process.stderr.read()

    said = b""
    threads = [threading.Thread(target=watch), threading.Thread(target=drain)]
    for thread in threads:
        thread.start()
    # The counts of a process can be read until its status is taken.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    seconds = time.monotonic() - start
    counts = [value_of(f"/proc/{process.pid}/io", name) for name in ("read_bytes", "write_bytes")]
    _, status_code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status_code)
    is_over.set()
    for thread in threads:
        thread.join()
    # 1 is an answer of `check` and `diff`.
    if process.returncode not in (0, 1):
        return {"error": said.decode().strip().splitlines()[-1:] or process.returncode}
    return {
        "s": round(seconds, 2),
        "user": round(usage.ru_utime, 2),
        "sys": round(usage.ru_stime, 2),
        "anonymous": round(maxima["RssAnon"] / 1e3),
        "resident": round(maxima["VmHWM"] / 1e3),
        "read": round(counts[0] / 1e9, 2),
        "written": round(counts[1] / 1e9, 2),
    }


class Files:
    """The inputs and the place of the outputs."""

    def __init__(self, program, directory, objects):
        self.program, self.directory = program, directory
        self.plain = self.path("plain.osm.pbf")
        self.day, self.minute = self.path("001.osc.gz"), self.path("minute.osc")
        if not os.path.exists(self.day):
            changes = ["--changes", "1", "--changes-dir", directory]
            self.run("synth", "--objects", str(objects), *changes, "-O", "-o", self.plain)
        if not os.path.exists(self.minute):
            text = capture([program, "cat", "-q", self.day, "-f", "opl"]).splitlines()
            with open(self.path("minute.opl"), "w") as file:
                file.write("\n".join(text[:: max(1, len(text) // MINUTE_CHANGES)]) + "\n")
            self.run("cat", self.path("minute.opl"), "-F", "opl", "-O", "-o", self.minute)
        self.towns()

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, *arguments):
        command = [self.program, arguments[0], "-q", *arguments[1:]]
        start = time.monotonic()
        subprocess.run(command, check=True)
        print(f"{' '.join(arguments)}: {time.monotonic() - start:.0f} s", file=sys.stderr)

    def towns(self):
        """Writes a configuration of regions around nodes of the day's changes."""
        text = capture([self.program, "cat", "-q", self.day, "-f", "opl"])
        places = []
        for line in text.splitlines():
            fields = {field[0]: field[1:] for field in line.split(" ")}
            if line[0] == "n" and fields.get("x"):
                places.append((float(fields["x"]), float(fields["y"])))
        step = max(1, len(places) // REGIONS)
        boxes = [[x - TOWN, y - TOWN, x + TOWN, y + TOWN] for x, y in places[::step][:REGIONS]]
        self.town = ",".join(f"{side:.4f}" for side in boxes[0])
        outputs = self.path("out-regions")
        extracts = [{"output": f"{number}.osm.pbf", "bbox": box} for number, box in enumerate(boxes)]
        with open(self.path("regions.json"), "w") as file:
            json.dump({"directory": outputs, "extracts": extracts}, file)

    def clean(self):
        for name in os.listdir(self.directory):
            if name.startswith("out"):
                path = self.path(name)
                (shutil.rmtree if os.path.isdir(path) else os.remove)(path)
        os.makedirs(self.path("out-regions"))

    def input_of(self, part):
        """Makes the file of a part, and returns its path."""
        if part == "located":
            located = self.path("located.osm.pbf")
            if not os.path.exists(located):
                print_run("add-locations-to-ways, external", measure(self.locating(located)), self.plain)
            return located
        return self.plain

    def locating(self, output):
        scratch = ["-n", "-i", "external", "-O", "-o", output]
        return [self.program, "add-locations-to-ways", "-q", self.plain, *scratch]

    def shared(self):
        """Moves the plain file to a file system that shares blocks. Returns the files there."""
        image, mounted = self.path("xfs.img"), self.path("xfs")
        os.makedirs(mounted, exist_ok=True)
        if not os.path.ismount(mounted):
            # Room for the file and for the file after the day, which may share few blocks with it.
            size = max(os.path.getsize(self.plain) * 21 // 10, 400_000_000)
            subprocess.run(["truncate", "-s", str(size), image], check=True)
            subprocess.run(["mkfs.xfs", "-q", "-m", "reflink=1", image], check=True)
            subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
            for path in (self.plain, self.day, self.minute):
                shutil.copy(path, mounted)
            os.remove(self.plain)
        files = Files(self.program, mounted, 0)
        files.run("apply-changes", files.plain, files.day, "-O", "-o", files.path("next.osm.pbf"))
        return files


def print_run(name, figures, path):
    if "error" in figures:
        print(f"| {name} | {figures['error']} |", flush=True)
        return
    size = os.path.getsize(path) / 1e9
    cells = list(figures.values()) + [round(figures["s"] / size, 2)]
    print(f"| {name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |", flush=True)


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--objects", type=int, default=1_400_000_000)
    parser.add_argument("--warm", action="store_true", help="run each job a second time, as the cache is then")
    parser.add_argument("--only", choices=JOBS, action="append", help="a part of the jobs; all by default")
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("directory", metavar="DIRECTORY")
    parser.add_argument("jobs", nargs="*", metavar="JOB")
    given = parser.parse_args()
    os.makedirs(given.directory, exist_ok=True)
    files = Files(os.path.abspath(given.program), os.path.abspath(given.directory), given.objects)
    columns = ["job", "s", "user", "sys", "anonymous MB", "resident MB", "GB read", "GB written", "s / GB"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    for part in given.only or JOBS:
        here = files.shared() if part == "shared" else files
        path = here.input_of(part)
        names = {
            "in": path,
            "day": here.day,
            "minute": here.minute,
            "next": here.path("next.osm.pbf"),
            "regions": here.path("regions.json"),
            "town": here.town,
            "out": here.path("out.osm.pbf"),
            "dir": here.path("out"),
        }
        for job, line in JOBS[part].items():
            if given.jobs and job not in given.jobs:
                continue
            command = [here.program] + line.format(**names).split()
            for is_warm in (False, True) if given.warm else (False,):
                here.clean()
                if not is_warm:
                    drop_caches()
                figures = measure(command)
                print_run(f"{part}: {job}" + (", again" if is_warm else ""), figures, path)
        here.clean()


main()
