"""Time and peak memory of a training step of the paper's original code, to set beside those of step.py.

    git clone https://github.com/polaschwoebel/InvDKGP && git clone https://github.com/markvdw/invgp
    python -m venv tf && tf/bin/pip install tensorflow-cpu==2.15.1 tensorflow-probability==0.23.0 gpflow==2.1.5
    tf/bin/python benchmarks/original.py --source . --size small --json results/benchmarks/original-small.json

It needs an environment of its own and none of ours. The original's parser, model, optimiser and phases are used as they
are; its step is compiled as in its training script, on random images, with kernel and noise variances trainable and the
data pipeline and monitors left out. Its published state needs the changes in PATCHES, made in those clones, to run with
these versions. Every row runs in a fresh process; the first step, which compiles, is not counted.
"""

import argparse
import importlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import types
from pathlib import Path

BOUNDS = ("gaussian-unbiased", "gaussian-sample", "softmax-sample")
PHASES = ("gp", "network")
SIZES = {"tiny": (4, 2, 8), "small": (100, 16, 200), "paper": (200, 120, 1200)}  # B, S, M
PATCHES = {
    "DeepKernelGP.py": (", load_pretrained_encoder\n", "\n"),  # imported, but nowhere defined
    "optimizer_maker.py": ("tf.keras.optimizers.Adam(", "tf.keras.optimizers.legacy.Adam("),
    "conditionals.py": ("q_sqrt.get_shape().ndims", "q_sqrt.shape.ndims"),
}
UNUSED = ("tensorflow_datasets", "tensorflow_addons", "robustgp")  # imported, but no part of a step


def patch(source: Path) -> None:
    """Apply PATCHES to the clones, once."""
    for name, (old, new) in PATCHES.items():
        for path in source.rglob(name):
            path.write_text(path.read_text().replace(old, new))


def measure(source: Path, bound: str, phase: str, size: tuple[int, int, int], repeats: int) -> dict:
    """One row."""
    for name in UNUSED:
        sys.modules[name] = types.ModuleType(name)
    for folder in ("invgp", "InvDKGP", "InvDKGP/deepkernelinv_experiments"):
        sys.path.insert(0, str(source / folder))
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}
    np, tf, gpflow = (importlib.import_module(name) for name in ("numpy", "tensorflow", "gpflow"))
    model, optimiser, batch = build(np, tf, gpflow, bound, phase, size)

    @tf.function(autograph=True)
    def step():
        with tf.GradientTape() as tape:
            tape.watch(model.trainable_variables)
            loss = -model.elbo(batch)
            gradients = tape.gradient(loss, model.trainable_variables)
        optimiser.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    seconds = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        float(step())
        seconds.append(time.perf_counter() - started)
    del seconds[0]
    return {
        "bound": bound,
        "phase": phase,
        **dict(zip(("batch", "orbit", "inducing"), size, strict=True)),
        "seconds": statistics.median(seconds),
        "spread": max(seconds) - min(seconds),
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
        "versions": {"tensorflow": tf.__version__, "gpflow": gpflow.__version__},
    }


def build(np, tf, gpflow, bound: str, phase: str, size: tuple[int, int, int]):
    """The original's invariant deep kernel GP with its MNIST network, its optimiser for a phase, and a batch."""
    num_batch, num_orbit, num_inducing = map(str, size)
    options = {
        "use_model": ["SVGP" if bound == "gaussian-unbiased" else "SampleSVGP"],
        "likelihood": ["Softmax" if bound == "softmax-sample" else "Gaussian"],
        "batch_size": [num_batch] * 2,
        "orbit_size": [num_orbit] * 2,
        "nr_inducing_points": [num_inducing],
        "learning_rate": ["0.001"] * 2,
        "dataset": ["MNIST"],
        "use_orbit": ["seven_param_affine"],
        "affine_init": ["0.02"],
        "CNN_architecture": ["small"],
        "basekern_lengthscale": ["10"],
        "likelihood_variance": ["0.05"],
        "ind_point_init": ["random_x"],
        "experiment_config": ["coord_ascent_training"],
        "deepkernel": [],
        "invariant": [],
        **({} if bound == "gaussian-unbiased" else {"matheron": []}),  # as its scripts with sample bounds have it
    }
    parser = importlib.import_module("utils.command_line_parser").create_parser()
    arguments = parser.parse_args([word for name, values in options.items() for word in (f"-{name}", *values)])
    arguments.autotune = tf.data.experimental.AUTOTUNE
    arguments.image_shape, arguments.image_size, arguments.total_nr_data = (28, 28, 1), 784, 60_000
    gpflow.config.set_default_float(np.float32)  # its default, "-precision single"
    gpflow.config.set_default_int(np.int32)

    maker = importlib.import_module("model_maker")
    generator = np.random.default_rng(0)
    images = generator.random((max(size[0], -(-size[2] // 3)), 28, 28, 1), dtype=np.float32)
    data = tf.data.Dataset.from_tensor_slices((images, generator.integers(0, 10, len(images))))
    prepare = maker.create_map_fn(arguments)
    batch = next(iter(data.batch(size[0]).map(prepare)))
    np.random.seed(0)
    tf.random.set_seed(0)
    model = maker.create_model(arguments, data.batch(50).map(prepare))
    # An untrained network maps noise to almost one point: inducing inputs are spread so that Kuu can be factored.
    Z = model.inducing_variable.Z
    Z.assign(Z.numpy() + 3 * generator.standard_normal(Z.shape).astype(np.float32))
    optimiser = maker.create_optimizer(arguments)
    trainable = importlib.import_module("deepkernelinv_experiments.utils.set_trainable_params")
    trainable.set_trainable_basekern_cnn(arguments, model, False)
    if phase == "network":
        importlib.import_module("deepkernelinv_experiments.utils").toggle_learnable_params(arguments, model)
        optimiser = maker.create_optimizer(arguments)
    return model, optimiser, batch


def main() -> None:
    """Measure all rows of a size, or (--row, for the fresh processes) one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="folder with InvDKGP and invgp in it")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, help="file to write the rows to")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    size = SIZES[arguments.size]
    if arguments.row:
        printed, sys.stdout = sys.stdout, sys.stderr  # the original prints much
        row = measure(arguments.source.resolve(), *json.loads(arguments.row), size, arguments.repeats)
        print(json.dumps(row), file=printed)
        return
    patch(arguments.source)
    rows = []
    for bound in BOUNDS:
        for phase in PHASES:
            command = [sys.executable, __file__, "--row", json.dumps([bound, phase]), "--source", arguments.source]
            command += ["--size", arguments.size, "--repeats", str(arguments.repeats)]
            rows.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            print(f"{bound:18} {phase:8} {rows[-1]['seconds']:8.3f} s  {rows[-1]['peak_gb']:6.2f} GB", flush=True)
            if arguments.json:
                result = {
                    "size": arguments.size,
                    "rows": rows,
                    "commits": commits(arguments.source),
                    "machine": machine(),
                }
                arguments.json.write_text(json.dumps(result, indent=2) + "\n")


def commits(source: Path) -> dict[str, str]:
    """Which state of the original was measured."""
    command = ("git", "rev-parse", "HEAD")
    names = ("InvDKGP", "invgp")
    return {
        name: subprocess.run(command, cwd=source / name, capture_output=True, text=True, check=True).stdout.strip()
        for name in names
    }


def machine() -> dict[str, str | int | None]:
    """Processor and number of its cores: our own package is not in this environment."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {"cpu": names[0] if names else platform.processor(), "threads": os.cpu_count()}


if __name__ == "__main__":
    main()
