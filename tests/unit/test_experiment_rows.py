"""Rows are computed once, resumed where they stopped, and compared with the paper."""

import json
import sys
from dataclasses import dataclass, replace

import pytest
import torch
from matplotlib.figure import Figure

from orbitune.errors import DataError, InputError, Interrupted
from orbitune.experiments.experiment import Budget, Experiment, Metric, accuracy_metric
from orbitune.experiments.page import render
from orbitune.experiments.plots import ranges_over_time
from orbitune.experiments.records import changed_settings, read_rows
from orbitune.experiments.rows import reproduce
from orbitune.experiments.summary import body, markdown, summarise
from orbitune.provenance import peak_memory_mb, write_json
from orbitune.training.progress import Silent
from stopping import StopAfter


@dataclass(frozen=True)
class Walk:
    steps: int
    offset: float = 0.0


@dataclass(frozen=True)
class Nested:
    walk: Walk
    seed: int
    pair: tuple[int, int]


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(()))


computed = []
PREDICTING = "predicting"


def compute(task):
    run, counter = task.open_run(), Counter()
    if isinstance(task.progress, StopAfter):
        task.progress.run = run
    run.track("counter", counter)
    with run.active():
        for step in run.steps("walk", task.config.steps):
            computed.append((task.seed, task.config.offset, step))
            counter.sum += torch.rand((), generator=run.generator)
        run.restore()
        run.once("predictions", lambda: task.progress.message(PREDICTING))
    return {
        "test_accuracy": counter.sum.item() + task.config.offset,
        "seconds": run.seconds,
        "note": "made up",
        "data": "x",
    }


EXPERIMENT = Experiment(
    name="walks",
    title="Walks (Fig. 99)",
    question="Where do they lead?",
    rows={"A": "first", "B": "second", "C": "third"},
    budgets={
        "smoke": Budget(2, {"A": Walk(4), "B": Walk(4, 1.0)}),
        "laptop": Budget(1, {"A": Walk(5), "B": Walk(5, 1.0), "C": Walk(5, 2.0)}),
    },
    compute=compute,
    figure=lambda records: Figure(),
    metrics=(accuracy_metric({"A": 0.5, "C": 0.25}), Metric("missing", "something else")),
    findings=lambda records: [f"{len(records)} walks."],
    differences=("We stroll.",),
)


@pytest.fixture(autouse=True)
def forget():
    computed.clear()


def run_it(tmp_path, budget="smoke", **options):
    return reproduce(EXPERIMENT, budget, tmp_path / "out", work=tmp_path / "work", **options)


def test_every_row_and_seed_has_a_record_with_its_provenance(tmp_path):
    run_it(tmp_path)
    records = read_rows(EXPERIMENT, tmp_path / "out")
    assert [(r["model"], r["seed"]) for r in records] == [("A", 0), ("A", 1), ("B", 0), ("B", 1)]
    first = records[0]
    assert first["config"] == {"steps": 4, "offset": 0.0} and first["budget"] == "smoke"
    assert first["paper_accuracy"] == 0.5 and records[2]["paper_accuracy"] is None
    assert first["peak_memory_mb"] is None or first["peak_memory_mb"] > 10
    assert {"commit", "machine", "seconds"} <= first.keys()


def test_rows_that_are_there_are_not_computed_again(tmp_path):
    first = run_it(tmp_path, rows=["A"], seeds=[0])
    assert len(computed) == 4
    again = run_it(tmp_path, rows=["A"], seeds=[0, 1])
    assert len(computed) == 8
    assert again["rows"][0]["seeds"] == [0, 1] and first["rows"][0]["seeds"] == [0]


def test_an_interrupted_row_goes_on_where_it_stopped_and_ends_the_same(tmp_path):
    with pytest.raises(Interrupted):
        run_it(tmp_path / "stopped", rows=["A"], seeds=[0], progress=StopAfter(3))
    assert not list((tmp_path / "stopped" / "out" / "walks").glob("*.json"))
    run_it(tmp_path / "stopped", rows=["A"], seeds=[0])
    assert [step for *_, step in computed] == [0, 1, 2, 3]
    run_it(tmp_path / "straight", rows=["A"], seeds=[0])
    stopped, straight = (read_rows(EXPERIMENT, tmp_path / name / "out")[0] for name in ("stopped", "straight"))
    assert stopped["test_accuracy"] == straight["test_accuracy"]


class StopWhilePredicting(StopAfter):
    """After the last step, with more rows to come."""

    def __init__(self):
        super().__init__(0)

    def message(self, text):
        if text == PREDICTING:
            self.run._request_stop(0, None)


def test_a_stop_after_the_last_step_of_a_row_does_not_begin_the_next(tmp_path):
    with pytest.raises(Interrupted, match="after the last step"):
        run_it(tmp_path, rows=["A", "B"], seeds=[0], progress=StopWhilePredicting())
    assert [step for *_, step in computed] == [0, 1, 2, 3]
    run_it(tmp_path, rows=["A", "B"], seeds=[0])
    assert len(computed) == 8  # only the steps of the other row were left
    assert [record["model"] for record in read_rows(EXPERIMENT, tmp_path / "out")] == ["A", "B"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("{", "damaged"), ("{}", "lacks budget, config, model"), ("[1]", "no record"), ('{"model": "A"}', "lacks budget")],
)
def test_a_file_that_is_no_record_is_named(tmp_path, content, complaint):
    (tmp_path / "out" / "walks").mkdir(parents=True)
    path = tmp_path / "out" / "walks" / "A-seed0.json"
    path.write_text(content)
    with pytest.raises(DataError, match=complaint) as error:
        run_it(tmp_path)
    assert str(path) in str(error.value) and not computed


def test_naming_no_row_is_not_naming_all(tmp_path):
    with pytest.raises(InputError, match="no row of walks is named; choose some of: A, B"):
        run_it(tmp_path, rows=[])
    assert not computed


def test_unfinished_work_of_another_configuration_is_left_alone(tmp_path):
    with pytest.raises(Interrupted):
        run_it(tmp_path, rows=["A"], seeds=[0], progress=StopAfter(2))
    run_it(tmp_path, budget="laptop", rows=["A"], seeds=[0])
    assert [step for *_, step in computed] == [0, 1, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(("row", "seed"), [("A", 0), ("A", 1), ("B", 0)])
def test_budgets_are_not_mixed(tmp_path, row, seed):
    run_it(tmp_path, rows=["A"], seeds=[0])
    computed.clear()
    with pytest.raises(InputError, match="budget 'smoke', not 'laptop'"):
        run_it(tmp_path, budget="laptop", rows=[row], seeds=[seed])
    assert not computed


class Listener(Silent):
    def __init__(self):
        self.heard = []

    def message(self, text):
        self.heard.append(text)


def test_a_record_of_another_recipe_is_kept_and_said_to_be_so(tmp_path):
    run_it(tmp_path, rows=["A"], seeds=[0])
    (record,) = read_rows(EXPERIMENT, tmp_path / "out")
    assert changed_settings(EXPERIMENT, record) == []
    del record["config"]["offset"]  # a setting that came later had its default
    assert changed_settings(EXPERIMENT, record) == []
    changed = replace(EXPERIMENT, budgets={"smoke": Budget(1, {"A": Walk(6, 0.5)})})
    assert changed_settings(changed, record) == ["steps 4, now 6", "offset 0, now 0.5"]
    listener = Listener()
    reproduce(changed, "smoke", tmp_path / "out", work=tmp_path / "work", progress=listener)
    assert len(computed) == 4 and "of another recipe (steps 4, now 6" in listener.heard[-1]
    assert "- A (seed 0): steps 4, now 6" in render({"walks": changed}, tmp_path / "out")
    gone = replace(EXPERIMENT, budgets={"smoke": Budget(1, {})})
    assert changed_settings(gone, record) == ["the row is not computed any more"]


def test_settings_within_settings_are_compared_but_not_the_seed():
    experiment = replace(EXPERIMENT, budgets={"smoke": Budget(1, {"A": Nested(Walk(3), seed=0, pair=(1, 2))})})
    record = {"model": "A", "budget": "smoke", "config": {"walk": {"steps": 5}, "seed": 7, "pair": [1, 2]}}
    assert changed_settings(experiment, record) == ["walk.steps 5, now 3"]


def test_summary_and_figure_are_up_to_date_when_a_later_row_is_interrupted(tmp_path):
    with pytest.raises(Interrupted):
        run_it(tmp_path, rows=["A", "B"], seeds=[0], progress=StopAfter(6))
    summary = json.loads((tmp_path / "out" / "walks.json").read_text())
    assert [row["seeds"] for row in summary["rows"]] == [[0], [], []]
    assert (tmp_path / "out" / "walks.png").exists()


def test_a_record_names_the_commits_of_all_sessions_that_worked_on_it(tmp_path, monkeypatch):
    monkeypatch.setattr("orbitune.experiments.rows.commit", lambda: "first")
    with pytest.raises(Interrupted):
        run_it(tmp_path, rows=["A"], seeds=[0], progress=StopAfter(3))
    monkeypatch.setattr("orbitune.experiments.rows.commit", lambda: "second")
    run_it(tmp_path, rows=["A"], seeds=[0, 1])
    assert [r["commit"] for r in read_rows(EXPERIMENT, tmp_path / "out")] == ["first, second", "second"]


def test_an_unknown_row_lists_those_of_the_budget(tmp_path):
    with pytest.raises(InputError, match="'C'; choose one of: A, B"):
        run_it(tmp_path, rows=["A", "C"])
    assert not computed


def test_mean_spread_paper_and_what_was_not_run(tmp_path):
    run_it(tmp_path)
    records = read_rows(EXPERIMENT, tmp_path / "out")
    for record, accuracy in zip(records, (0.5, 0.7, 1.0, 1.0), strict=True):
        record["test_accuracy"], record["seconds"] = accuracy, 300.0
    a, b, c = body(EXPERIMENT, summarise(EXPERIMENT, records))
    assert a == ["A", "first", "0.6000 ± 0.1414 (0.5)", "–", "2", "5 min"]
    assert b == ["B", "second", "1.0000", "–", "2", "5 min"]
    assert c == ["C", "third", "– (0.25)", "–", "not run yet", "–"]
    assert markdown(EXPERIMENT, summarise(EXPERIMENT, records)).count("\n") == 4


def test_the_page_shows_table_figure_findings_differences_and_data(tmp_path):
    before = render({"walks": EXPERIMENT}, tmp_path / "out")
    assert before.count("not run yet") == 3 and ".png" not in before
    run_it(tmp_path)
    after = render({"walks": EXPERIMENT}, tmp_path / "out")
    for part in ("![Walks (Fig. 99)](../out/walks.png)", "- 4 walks.", "- We stroll.", "Data: x: made up.", "(0.5)"):
        assert part in after


def test_the_page_says_which_rows_a_note_on_the_data_is_about(tmp_path):
    run_it(tmp_path)
    for path in (tmp_path / "out" / "walks").glob("A-*.json"):
        write_json(path, json.loads(path.read_text()) | {"note": ""})
    assert "Data: x: made up (B)." in render({"walks": EXPERIMENT}, tmp_path / "out")


def test_the_page_shows_the_orbit_of_the_first_seed_of_pictured_rows(tmp_path):
    run_it(tmp_path)
    pictured = replace(EXPERIMENT, pictured=("A", "B"))
    for seed in (0, 1):
        (tmp_path / "out" / "walks" / f"A-seed{seed}-orbit.png").touch()
    page = render({"walks": pictured}, tmp_path / "out")
    assert "![A-seed0](../out/walks/A-seed0-orbit.png)" in page
    assert page.count("-orbit.png") == 1


def test_an_experiment_whose_paper_gives_no_accuracy_says_nothing_of_it(tmp_path):
    other = replace(EXPERIMENT, metrics=(Metric("test_accuracy", "height"),))
    reproduce(other, "smoke", tmp_path / "out", work=tmp_path / "work", rows=["A"], seeds=[0])
    assert read_rows(other, tmp_path / "out")[0]["paper_accuracy"] is None


def test_ranges_over_time_are_thinned_and_leave_out_what_never_moved():
    history = [{"seconds": float(t), "ranges": {"r": (-0.1 * t, 0.1 * t), "s": (0.0, 0.0)}} for t in range(500)]
    columns = ranges_over_time([{"seconds": 0.0, "message": "hello"}, *history], num_points=50)
    assert set(columns) == {"seconds", "r"}
    assert len(columns["seconds"]) == len(columns["r"]["low"]) == 50
    assert columns["seconds"][0] == 0 and columns["seconds"][-1] == 499 and columns["r"]["high"][-1] == 49.9
    assert ranges_over_time([]) == {}


def test_moments_at_which_no_range_moved_do_not_crowd_out_the_others():
    still = [{"seconds": float(t), "ranges": {"rotation": (-0.1, 0.1)}} for t in range(1000)]
    moving = [{"seconds": 1000.0 + t, "ranges": {"rotation": (-0.1 - t, 0.1 + t)}} for t in range(1, 4)]
    after = [line | {"seconds": line["seconds"] + 1000} for line in [moving[-1]] * 1000]
    assert ranges_over_time([*still, *moving, *after])["seconds"] == [0.0, 1001.0, 1002.0, 1003.0]


def test_lists_of_numbers_stand_on_one_line_and_read_back_the_same(tmp_path):
    record = {"a": [1, -2.5, 1e-07], "b": {"c": [[1, 2], [3]]}, "d": "[ 1, 2 ]", "e": ["x", "y"], "f": []}
    write_json(tmp_path / "record.json", record)
    text = (tmp_path / "record.json").read_text()
    assert '"a": [1, -2.5, 1e-07]' in text
    assert json.loads(text) == record


def test_peak_memory_is_known_on_linux():
    memory = peak_memory_mb()
    assert memory > 10 if sys.platform == "linux" else memory is None or memory > 10
