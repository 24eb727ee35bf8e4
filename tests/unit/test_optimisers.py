"""SignificantAdam: goes where there is a direction, stays where there is none."""

import torch
from torch import nn

from orbitune.training.optimisers import SignificantAdam


def walk(optimiser_class, signal, num_walks=500, num_steps=100, seed=0):
    """Independent parameters with gradients signal + N(0, 1)."""
    generator = torch.Generator().manual_seed(seed)
    parameter = nn.Parameter(torch.zeros(num_walks))
    optimiser = optimiser_class([parameter], lr=0.1, betas=(0.9, 0.99))
    for _ in range(num_steps):
        parameter.grad = signal + torch.randn(num_walks, generator=generator)
        optimiser.step()
    return parameter.detach()


def test_pure_noise_moves_parameters_less_than_half_as_far_as_with_adam():
    assert walk(SignificantAdam, 0.0).std() < 0.5 * walk(torch.optim.Adam, 0.0).std()


def test_a_clear_direction_is_followed_at_nearly_the_speed_of_adam():
    ours, adams = walk(SignificantAdam, 3.0).mean(), walk(torch.optim.Adam, 3.0).mean()
    assert ours < 0 and 0.7 < ours / adams < 1.0


def test_a_weak_direction_is_still_followed():
    """A signal of a quarter of the noise: slower than Adam, but well beyond the spread over repetitions."""
    moved = walk(SignificantAdam, 0.25)
    assert -moved.mean() > 1.5 * moved.std()


def test_scale_of_the_gradient_does_not_matter():
    def path(scale):
        parameter = nn.Parameter(torch.zeros(3))
        optimiser = SignificantAdam([parameter])
        for step in range(5):
            parameter.grad = scale * torch.tensor([1.0, -2.0, float(step)])
            optimiser.step()
        return parameter.detach()

    torch.testing.assert_close(path(1.0), path(1e-3), rtol=1e-4, atol=1e-6)


def test_state_dict_round_trip_continues_the_same_path():
    def run(restart):
        parameter = nn.Parameter(torch.zeros(2))
        optimiser = SignificantAdam([{"params": [parameter], "lr": 0.3}])
        for step in range(6):
            if restart and step == 3:
                state = optimiser.state_dict()
                optimiser = SignificantAdam([{"params": [parameter], "lr": 0.3}])
                optimiser.load_state_dict(state)
            parameter.grad = torch.tensor([1.0, (-1.0) ** step])
            optimiser.step()
        return parameter.detach()

    assert torch.equal(run(False), run(True))


def test_a_parameter_without_a_gradient_stays():
    parameter = nn.Parameter(torch.ones(2))
    SignificantAdam([parameter]).step()
    assert torch.equal(parameter.detach(), torch.ones(2))
