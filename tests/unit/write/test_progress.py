"""Steps are timed and told to whoever listens; a bar shows them in a terminal only."""

from __future__ import annotations

import io

from rich.console import Console

from drawstring.write.progress import ProgressBar, showing
from drawstring.write.steps import advance, advancing, step, track


class Heard:
    def __init__(self):
        self.events = []

    def begin(self, name, total):
        self.events.append(("begin", name, total))

    def advance(self, count):
        self.events.append(("advance", count))

    def end(self):
        self.events.append(("end",))


def test_steps_are_timed_and_told():
    outer, inner = Heard(), Heard()
    with track(outer) as steps, track(inner) as more:
        with step("writing", 2):
            assert list(advancing("ab")) == ["a", "b"]
        with step("committing"):
            pass
    assert (
        outer.events
        == inner.events
        == [
            ("begin", "writing", 2),
            ("advance", 1),
            ("advance", 1),
            ("end",),
            ("begin", "committing", None),
            ("end",),
        ]
    )
    assert list(more.seconds) == ["writing", "committing"]
    assert steps.seconds == {}
    with step("nobody listens"):
        advance()


def test_a_bar_waits_shows_the_step_and_goes_away():
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    bar = ProgressBar("Cleaning t", console=console, patience=0.0)
    with track(bar), step("deleting files", 3):
        advance()
        bar._bar.refresh()
        assert "Cleaning t: deleting files" in screen.getvalue()
        assert "1/3" in screen.getvalue()
    bar.close()
    patient = ProgressBar("short", console=console, patience=60.0)
    with track(patient), step("quick"):
        pass
    assert patient._bar is None


def test_no_bar_without_a_terminal_or_where_it_is_turned_off():
    for enabled, watched in ((True, False), (False, True)):
        with showing("t", enabled=enabled, watched=lambda watched=watched: watched):
            heard = Heard()
            with track(heard), step("a"):
                pass
            assert len(heard.events) == 2
    with showing("t", watched=lambda: True), track() as steps:
        assert len(steps._listeners) == 1
