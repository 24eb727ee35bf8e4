"""A run survives interruption: at every step, in every way, it ends as if nothing had happened."""

import json
import logging
import os
import signal

import pytest
import torch

from orbitune.errors import CheckpointError, InputError, Interrupted
from orbitune.training import Run
from orbitune.training.run import HISTORY


class Crash(Exception):
    pass


def program(run, crash_at=None):
    """A small learner: two loops, and in between a decision that depends on the first and on chance."""
    crash = iter(range(10**6))
    weights = torch.nn.Linear(3, 2)
    with torch.no_grad():
        for p in weights.parameters():
            p.copy_(torch.randn(p.shape, generator=run.generator))
    run.track("weights", weights)

    def maybe_crash():
        if next(crash) == crash_at:
            raise Crash

    def learn(name, total, parameters):
        optimiser = torch.optim.Adam(parameters, lr=0.1)
        for step in run.steps(name, total, optimiser=optimiser):
            maybe_crash()
            noise = torch.randn(4, 3, generator=run.generator)
            optimiser.zero_grad()
            sum(p.square().sum() for p in parameters).mul(noise.mean()).backward()
            optimiser.step()
            run.log(phase=name, step=step, norm=parameters[0].norm().item())
            maybe_crash()

    learn("first", 4, list(weights.parameters()))
    maybe_crash()
    chosen = run.once("decision", lambda: weights.weight.detach() + torch.randn(2, 3, generator=run.generator))
    maybe_crash()
    second = torch.nn.Parameter(chosen.clone())
    holder = torch.nn.ParameterList([second])
    run.track("second", holder)
    learn("second", 3, [second])
    return torch.cat([weights.weight.flatten(), second.flatten()]).detach().clone(), torch.randn(
        2, generator=run.generator
    )


def history(directory):
    lines = [json.loads(line) for line in (directory / HISTORY).read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


@pytest.mark.parametrize("save_seconds", [0.0, 1e9])
@pytest.mark.parametrize("crash_at", [0, 1, 4, 7, 8, 9, 10, 13])
def test_killed_anywhere_and_resumed_ends_with_the_same_numbers_and_history(tmp_path, crash_at, save_seconds):
    expected = program(Run(tmp_path / "calm", seed=3, save_seconds=save_seconds))
    with pytest.raises(Crash):
        program(Run(tmp_path / "killed", seed=3, save_seconds=save_seconds), crash_at)
    result = program(Run(tmp_path / "killed", seed=3, resume=True, save_seconds=save_seconds))
    for got, want in zip(result, expected, strict=True):
        assert torch.equal(got, want)
    assert history(tmp_path / "killed") == history(tmp_path / "calm")


def test_killed_again_and_again(tmp_path):
    expected = program(Run(tmp_path / "calm", seed=3))
    for crash_at in (3, 2, 5, 1, 2):  # counted from wherever the last attempt was saved
        with pytest.raises(Crash):
            program(Run(tmp_path / "killed", seed=3, resume=True, save_seconds=0.0), crash_at)
    result = program(Run(tmp_path / "killed", seed=3, resume=True, save_seconds=0.0))
    assert all(torch.equal(got, want) for got, want in zip(result, expected, strict=True))


def test_finished_steps_are_not_taken_again(tmp_path):
    program(Run(tmp_path, seed=3, save_seconds=0.0))
    run = Run(tmp_path, seed=3, resume=True)
    assert list(run.steps("first", 4)) == []


def test_ctrl_c_saves_between_steps_and_says_where(tmp_path):
    expected = program(Run(tmp_path / "calm", seed=3))

    def interrupt_once(run):
        with run.active():
            for step in run.steps("before", 2):
                if step == 0:
                    os.kill(os.getpid(), signal.SIGINT)
            return program(run)

    with pytest.raises(Interrupted, match="step 1 of 2 of 'before'"):
        interrupt_once(Run(tmp_path / "run", seed=3))
    assert (tmp_path / "run" / "checkpoint.safetensors").exists()
    run = Run(tmp_path / "run", seed=3, resume=True)
    list(run.steps("before", 2))
    assert all(torch.equal(a, b) for a, b in zip(program(run), expected, strict=True))


def test_ctrl_c_after_the_last_step_takes_effect_at_the_end(tmp_path):
    run = Run(tmp_path)
    with pytest.raises(Interrupted, match="after the last step"), run.active():
        list(run.steps("walk", 2))
        os.kill(os.getpid(), signal.SIGINT)
        run.once("score", lambda: 7)
    resumed = Run(tmp_path, resume=True)
    assert list(resumed.steps("walk", 2)) == [] and resumed.once("score", lambda: 8) == 7


def test_a_loop_is_not_taken_for_another_of_the_same_name():
    run = Run(None)
    list(run.steps("network", 2))
    with pytest.raises(InputError, match="has had 'network' already"):
        list(run.steps("network", 2))


def test_a_directory_with_a_run_is_not_overwritten(tmp_path):
    program(Run(tmp_path, seed=3, save_seconds=0.0))
    with pytest.raises(CheckpointError, match="already holds a run"):
        Run(tmp_path, seed=3)


def test_another_seed_cannot_resume(tmp_path):
    program(Run(tmp_path, seed=3, save_seconds=0.0))
    with pytest.raises(CheckpointError, match="seed 3, not 4"):
        Run(tmp_path, seed=4, resume=True)


def test_a_program_without_what_was_saved_cannot_resume(tmp_path):
    program(Run(tmp_path, seed=3, save_seconds=0.0))
    run = Run(tmp_path, seed=3, resume=True)
    with pytest.raises(CheckpointError, match="'weights'"):
        run.once("something else", lambda: 1)


def test_warnings_of_the_library_become_events_in_the_history(tmp_path):
    run = Run(tmp_path)
    with run.active():
        logging.getLogger("orbitune.gp.linalg").warning("jitter raised to %s", "1e-5")
    assert history(tmp_path) == [
        {"event": "warning", "source": "orbitune.gp.linalg", "message": "jitter raised to 1e-5"}
    ]


def test_a_run_without_a_directory_keeps_nothing():
    program(Run(None, seed=3, save_seconds=0.0))
