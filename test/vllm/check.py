# SPDX-License-Identifier: MIT
"""Runs the checks on a vLLM server of its own. check.py FOLDER [NAME...]: setup.sh made the folder"""
import os
import sys

import check_counts
import check_gaps
import check_killed
import check_launch
import check_sweep
import check_trace
import model
from report import Report
from server import Server

ON_ONE_SERVER = {"counts": check_counts, "gaps": check_gaps, "killed": check_killed,
                 "sweep": check_sweep, "trace": check_trace}


def main(folder, *names):
    report = Report()
    names = names or (*ON_ONE_SERVER, "launch")
    model.make(os.path.join(folder, "model"))
    if set(names) & set(ON_ONE_SERVER):
        server = Server(os.path.join(folder, "model"), os.path.join(folder, "server.log"))
        try:
            server.wait()
            for name in names:
                if name in ON_ONE_SERVER:
                    report.run(name, ON_ONE_SERVER[name].check, server)
        finally:
            status = server.stop()
        report.run("ends as without", lambda r: r.must(status == 0, "status %d" % status))
    if "launch" in names:
        report.run("launch", check_launch.check, folder)
    return report.end()


sys.exit(main(*sys.argv[1:]))
