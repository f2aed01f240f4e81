"""The system calls of a running service: the log is synced before the answer leaves."""

import re
import shutil
import subprocess

import pytest

from served import SPEC, TWO, ended, process, until

STRACE = shutil.which("strace")


@pytest.mark.skipif(STRACE is None, reason="needs strace")
def test_the_log_is_synced_between_the_request_and_the_answer(tmp_path):
    """For each of ten decisions and rewards: its request is read, the log synced, and only then its answer sent."""
    trace = tmp_path / "trace"
    with process(tmp_path / "service") as server:
        server.client.post("/v1/models", json=SPEC)
        calls = "trace=fsync,fdatasync,read,recvfrom,recvmsg,write,writev,sendto,sendmsg"
        said = tmp_path / "said"
        command = [STRACE, "-f", "-y", "-s", "2000", "-e", calls, "-o", trace, "-p", str(server.process.pid)]
        with said.open("w") as complaints:
            tracer = subprocess.Popen(command, stderr=complaints)
        try:
            until(lambda: said.read_text() or tracer.poll() is not None, "the tracer says something")
            if "attached" not in said.read_text():
                pytest.skip(f"processes may not be traced here: {said.read_text()}")
            for place in range(10):
                body = {"event_id": f"traced-{place}", "features": TWO}
                assert server.client.post("/v1/models/news/decisions", json=body).status_code == 200
                given = {"event_id": f"traced-{place}", "reward": 1.0}
                assert server.client.post("/v1/models/news/rewards", json=given).status_code == 200
            # Its thread is stopped at each call until the tracer has noted it: so the last answer is.
            assert server.client.get("/nowhere").status_code == 404
        finally:
            ended(tracer)  # before the server: of one that is traced its parent hears only after the tracer
    order = []
    for line in trace.read_text(errors="replace").splitlines():
        if re.search(r"\b(fsync|fdatasync)(\(.*service\.db-wal>\)| resumed>).*= 0", line):
            order.append("synced")
        elif "HTTP/1.1 200 OK" in line and re.search(r"\b(write|writev|sendto|sendmsg)\(", line):
            order.append("answered")
        elif "traced-" in line and re.search(r"\b(read|recvfrom|recvmsg)\b", line):
            order.append("asked")
    found = [one for place, one in enumerate(order) if place == 0 or one != order[place - 1]]
    assert order.count("answered") == 20
    # Nothing is answered unless the log was synced after what was asked last.
    for place, one in enumerate(found):
        if one == "answered":
            assert found[place - 1] == "synced", found
    assert found.count("asked") >= 20
