"""The cases of docs/errors.md; :mod:`user_errors` makes the files they are about."""

from user_errors import Mistake

MISTAKES = {
    "Learning: `orbitune fit`": [
        Mistake("orbitune fit", "nothing to learn from: give DATA, for example `orbitune fit rotated-digits`", 2),
        Mistake(
            "orbitune fit no-such-set",
            "unknown data set (nor is there a folder or file of that name) 'no-such-set'; choose one of: cifar10, digits, fashion-mnist, mnist, pcam, rotated-digits, rotated-mnist",
            2,
        ),
        Mistake("orbitune fit no/such/folder", "there is no file or folder no/such/folder (looked from …)", 2),
        Mistake(
            "orbitune fit notes.txt",
            "notes.txt is neither a folder of images nor an .npz file; expected one of them, or a name",
            2,
        ),
        Mistake(
            "orbitune fit mnist",
            "the data set 'mnist' is not on this machine: no train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz in …/data/mnist. Fetch it with `orbitune data fetch mnist`, put the files there, or set ORBITUNE_DATA to the folder in which mnist/ lies",
            2,
        ),
        Mistake(
            "orbitune fit one-class/",
            "one-class has only cat/; expected one sub-folder per class, at least two, with images in them (.png, .jpg, .jpeg, .bmp, .tif, .tiff, .webp), or train/ and test/ with such sub-folders",
            2,
        ),
        Mistake(
            "orbitune fit empty/",
            "empty/dog holds no images; expected some of the class 'dog' (.png, .jpg, .jpeg, .bmp, .tif, .tiff, .webp). Add images, or remove the folder",
            2,
        ),
        Mistake(
            "orbitune fit sizes/",
            "the images have 2 different sizes, height×width: 8×8 (sizes/cat/a.png); 9×8 (sizes/dog/b.png). Expected one size for all: bring them to one, say 64×64, with --resize 64 (in Python load_dataset(…, resize=64), in the app a side)",
            2,
        ),
        Mistake(
            "orbitune fit broken/",
            "cannot read the image broken/dog/b.png: no image format that Pillow knows. Remove the file, or save it anew",
            2,
        ),
        Mistake(
            "orbitune fit unlabelled.npz",
            "unlabelled.npz has no y_train; expected x_train, y_train, got x_train (6, 8, 8)",
            2,
        ),
        Mistake(
            "orbitune fit holes.npz",
            "holes, train: 1 of 6 images contain NaN or infinite pixels; expected numbers in [0, 1]. Leave these images out, or fill the holes",
            2,
        ),
        Mistake(
            "orbitune fit standardised.npz",
            "standardised, train: pixels range from -1.5 to 2.5; floating-point images must lie in [0, 1]: rescale them first. Images that were standardised (mean 0, deviation 1) should be given as they were before",
            2,
        ),
        Mistake(
            "orbitune fit one-hot.npz",
            "one-hot, train: labels must have shape (N,), got (6, 2). One-hot labels: y.argmax(axis=1)",
            2,
        ),
        Mistake(
            "orbitune fit short.npz",
            "short, train: expected one int64 label for each of 6 images, got torch.int64 of shape (5,)",
            2,
        ),
        Mistake(
            "orbitune fit one-class.npz",
            "one-class: all 6 training images have the class '0'; expected at least two classes. With one class there is nothing to tell apart: check how the labels were read",
            2,
        ),
        Mistake(
            "orbitune fit digits --orbit rotaton",
            "unknown parameter of AffineOrbit 'rotaton'; choose one of: log_scale_x, log_scale_y, rotation, shear_x, shear_y, translate_x, translate_y",
            2,
        ),
        Mistake(
            "orbitune fit digits --likelihood student",
            "unknown likelihood 'student'; choose one of: bernoulli, gaussian, softmax",
            2,
        ),
        Mistake(
            "orbitune fit digits --likelihood bernoulli",
            "the Bernoulli likelihood is for two classes, the data have 10: use softmax",
            2,
        ),
        Mistake(
            "orbitune fit digits --backbone vgg",
            "unknown backbone 'vgg'; choose one of: identity, mlp, mnist-cnn, pcam, resnet18, resnet18-narrow, resnet18-strided, resnet18-strided-narrow",
            2,
        ),
        Mistake(
            "orbitune fit digits --learner magic",
            "Invalid value for '--learner': Value error, 'magic' is not one of 'crossfit', 'coordinate', 'joint', 'max-likelihood', 'fixed', 'augmented', 'plain'.",
            2,
            ours=False,
        ),
        Mistake(
            "orbitune fit digits --budget weekend",
            "Invalid value for '--budget': Value error, 'weekend' is not one of 'smoke', 'laptop', 'paper'.",
            2,
            ours=False,
        ),
        Mistake(
            "orbitune fit digits --train-size 5",
            "digits, train: cannot choose 5 images; expected at least one per class and at most all there are, 10 … 5000",
            2,
        ),
        Mistake(
            "orbitune fit digits --seed -1",
            "Invalid value for '--seed': Input should be greater than or equal to 0",
            2,
            ours=False,
        ),
        Mistake(
            "orbitune fit digits --config missing.toml",
            "cannot read the configuration missing.toml: No such file or directory",
            2,
        ),
        Mistake(
            "orbitune fit digits --config typo.toml",
            "unknown key in typo.toml: 'lerner'; choose one of: backbone, baseline_epochs, data, learner, likelihood, orbit, predict_orbit_size, resize, seed, settings, train_size",
            2,
        ),
        Mistake("orbitune fit digits --config type.toml", "type.toml: seed: expected int, got 'x'", 2),
        Mistake(
            "orbitune fit digits --config half.toml",
            "half.toml: orbit: ranges.rotation: expected 2 values, got [1.0]",
            2,
        ),
        Mistake(
            "orbitune fit digits --config folds.toml",
            "folds.toml [settings]: folds must be at least 1, got 0",
            2,
        ),
        Mistake(
            "orbitune fit digits --config rate.toml",
            "rate.toml [settings]: natural_rate must be more than 0 and at most 1, got 2.0",
            2,
        ),
        Mistake(
            "orbitune fit digits --config odd.toml",
            "the unbiased bound splits the orbit into halves: orbit_size must be even, got 3",
            2,
        ),
        Mistake(
            "orbitune fit digits --config word.toml",
            "word.toml: settings: expected a table, [settings], got 'fast'",
            2,
        ),
        Mistake(
            "orbitune fit digits --config no.toml",
            "no.toml is not valid TOML: Invalid statement (at line 1, column 1)",
            2,
        ),
        Mistake(
            "orbitune fit good.npz --backbone pcam",
            "images of shape (1, 8, 8) are too small for this network: sides must be ≥ 36",
            2,
        ),
        Mistake(
            "orbitune fit digits --out finished",
            "finished already holds a run: resume it (--resume) or choose another directory",
            2,
        ),
        Mistake(
            "orbitune fit --resume --out nowhere",
            "cannot read the configuration nowhere/config.toml: No such file or directory",
            2,
        ),
        Mistake(
            "orbitune fit --resume --out unfinished --seed 3",
            "--resume continues unfinished with its own config.toml, where seed is 0, not 3: leave the option out, or start a new run in another --out",
            2,
        ),
        Mistake("orbitune fit digits --out notes.txt/run", "Not a directory: notes.txt/run", 1),
    ],
    "Predicting: `orbitune predict`": [
        Mistake("orbitune predict finished", "Missing argument 'data'.", 2, ours=False),
        Mistake(
            "orbitune predict nowhere good.npz",
            "nowhere holds no finished model (model.json is missing). Either it is not the directory of a run, or the run is unfinished: resume it",
            2,
        ),
        Mistake(
            "orbitune predict unfinished good.npz",
            "unfinished holds no finished model (model.json is missing). Either it is not the directory of a run, or the run is unfinished: resume it",
            2,
        ),
        Mistake(
            "orbitune predict cut-short good.npz",
            "cut-short/model.safetensors is not a readable state of Orbitune: Error while deserializing header: invalid header length",
            2,
        ),
        Mistake(
            "orbitune predict finished no-such-set",
            "unknown data set (nor is there a folder or file of that name) 'no-such-set'; choose one of: cifar10, digits, fashion-mnist, mnist, pcam, rotated-digits, rotated-mnist",
            2,
        ),
        Mistake(
            "orbitune predict finished large/",
            "the model was trained on images of shape (1, 8, 8), these have (1, 12, 12)",
            2,
        ),
        Mistake(
            "orbitune predict finished coloured/",
            "coloured has coloured images; expected grey ones, like those the model was trained on",
            2,
        ),
        Mistake(
            "orbitune predict finished broken/dog",
            "cannot read the image broken/dog/b.png: no image format that Pillow knows. Remove the file, or save it anew",
            2,
        ),
        Mistake(
            "orbitune predict finished good.npz --orbit-size 0",
            "Invalid value for '--orbit-size': Input should be greater than or equal to 1",
            2,
            ours=False,
        ),
    ],
    "The report: `orbitune report`": [
        Mistake("orbitune report nowhere", "there is no run directory nowhere", 2),
        Mistake(
            "orbitune report unfinished",
            "unfinished holds no finished run (result.json is missing): the run is unfinished: continue it with `orbitune fit --resume --out unfinished`",
            2,
        ),
        Mistake(
            "orbitune report large",
            "large holds no finished run (result.json is missing): it is not the directory of a run",
            2,
        ),
        Mistake(
            "orbitune report finished --out large",
            "--out names the report's file, but large is a directory: give large/report.html",
            2,
        ),
        Mistake("orbitune report damaged", "damaged/result.json is damaged: it lacks 'ranges'", 2),
    ],
    "Exporting: `orbitune export`": [
        Mistake(
            "orbitune export finished",
            "Missing option '--to'. Choose from: torch, torchvision, kornia, albumentations, json, onnx",
            2,
            ours=False,
        ),
        Mistake(
            "orbitune export finished --to imgaug",
            "Invalid value for '--to': Value error, 'imgaug' is not one of 'torch', 'torchvision', 'kornia', 'albumentations', 'json', 'onnx'.",
            2,
            ours=False,
        ),
        Mistake(
            "orbitune export nowhere --to torch",
            "nowhere holds no finished model (model.json is missing). Either it is not the directory of a run, or the run is unfinished: resume it",
            2,
        ),
        Mistake(
            "orbitune export finished --to torch",
            "finished/augmentation_torch.py exists: give --force to overwrite it, or another file with --out",
            2,
        ),
        Mistake(
            "orbitune export finished --to json --out large",
            "--out names a file, but large is a directory: try large/augmentation.json",
            2,
        ),
        Mistake(
            "orbitune export finished --to json --out - --json",
            "--out - prints the export itself: it goes neither with --json nor with --to onnx",
            2,
        ),
        Mistake(
            "orbitune export finished --to json --check",
            "--check runs a file that was written: it goes neither with --out - nor with --to json",
            2,
        ),
    ],
    "Data sets: `orbitune data`": [
        Mistake(
            "orbitune data fetch no-such-set",
            "unknown data set to fetch 'no-such-set'; choose one of: cifar10, fashion-mnist, mnist, pcam, rotated-mnist",
            2,
        ),
        Mistake(
            "orbitune data fetch digits",
            "unknown data set to fetch 'digits'; choose one of: cifar10, fashion-mnist, mnist, pcam, rotated-mnist",
            2,
        ),
        Mistake("orbitune data show", "No such command 'show'.", 2, ours=False),
    ],
    "The paper: `orbitune reproduce`": [
        Mistake(
            "orbitune reproduce fig99",
            "Invalid value for 'name': Value error, 'fig99' is not one of 'fig1', 'embeddings', 'parameterisation', 'variances', 'mnist-subsets', 'rotmnist', 'timing', 'pcam', 'cifar10', 'max-likelihood', 'planted'.",
            2,
            ours=False,
        ),
        Mistake(
            "orbitune reproduce fig1 --rows M8",
            "unknown row of fig1 at budget laptop: 'M8'; choose one of: plain, sign-invariant",
            2,
        ),
        Mistake(
            "orbitune reproduce fig1 --rows ,", "no row of fig1 is named; choose some of: plain, sign-invariant", 2
        ),
        Mistake(
            "orbitune reproduce fig1 --out results",
            "results/fig1/plain-seed0.json is damaged: remove it, and the row will be computed again",
            2,
        ),
        Mistake(
            "orbitune reproduce fig1 --seeds 0",
            "Invalid value for '--seeds': Input should be greater than or equal to 1",
            2,
            ours=False,
        ),
        Mistake(
            "orbitune reproduce fig1 --budget smoke --out notes.txt/results",
            "Not a directory: notes.txt/results/fig1",
            1,
        ),
    ],
    "Elsewhere on the command line": [
        Mistake("orbitune learn", "No such command 'learn'.", 2, ours=False),
        Mistake(
            "orbitune demo --budget tiny",
            "Invalid value for '--budget': Value error, 'tiny' is not one of 'smoke', 'laptop'.",
            2,
            ours=False,
        ),
        Mistake("orbitune doctor --loud", "No such option: --loud", 2, ours=False),
    ],
    "The estimators": [
        Mistake(
            'InvariantClassifier().fit(X, ["cat"] * 6)',
            "all 6 labels are 'cat': with one class there is nothing to tell apart. Expected at least two classes in y",
        ),
        Mistake(
            "InvariantClassifier().fit(X[:5], y)",
            "Found input variables with inconsistent numbers of samples: [5, 6]",
            ours=False,
        ),
        Mistake("InvariantClassifier().fit(X * np.nan, y)", "Input X contains NaN. …", ours=False),
        Mistake(
            'InvariantClassifier(orbit=["rotaton"]).fit(X, y)',
            "unknown parameter of AffineOrbit 'rotaton'; choose one of: log_scale_x, log_scale_y, rotation, shear_x, shear_y, translate_x, translate_y",
        ),
        Mistake(
            "InvariantClassifier(orbit=3).fit(X, y)",
            "orbit must be None, names of affine parameters, or an Orbit; got 3",
        ),
        Mistake(
            'InvariantClassifier(orbit=["rotation"]).fit(vectors, y)',
            "orbit=['rotation'] names affine maps of images, but X holds vectors of 64 features. If these are flat images, say image_shape; else give an Orbit that acts on vectors",
        ),
        Mistake(
            'InvariantClassifier(backbone="vgg").fit(X, y)',
            "unknown backbone 'vgg'; choose one of: identity, mlp, mnist-cnn, pcam, resnet18, resnet18-narrow, resnet18-strided, resnet18-strided-narrow",
        ),
        Mistake(
            'InvariantClassifier(backbone="resnet18").fit(vectors, y)',
            "the backbone 'resnet18' is for images, but X holds vectors of 64 features. If these are flat images, say image_shape; else use 'mlp' or 'identity'",
        ),
        Mistake("InvariantClassifier(backbone=dict).fit(X, y)", "backbone must make an nn.Module, it made a dict"),
        Mistake(
            'InvariantClassifier(likelihood="student").fit(X, y)',
            "unknown likelihood 'student'; choose one of: bernoulli, gaussian, softmax",
        ),
        Mistake(
            'InvariantClassifier(likelihood="bernoulli").fit(X, [0, 1, 2, 0, 1, 2])',
            "the Bernoulli likelihood is for two classes, the data have 3: use softmax",
        ),
        Mistake(
            "InvariantClassifier(likelihood=Softmax(3)).fit(X, y)",
            "Softmax has 3 outputs, but y has 2 classes: expected 2 or 1",
        ),
        Mistake(
            'InvariantClassifier(learner="magic").fit(X, y)',
            "unknown learner 'magic'; choose one of: augmented, coordinate, crossfit, fixed, joint, max-likelihood, plain",
        ),
        Mistake(
            'InvariantClassifier(budget="weekend").fit(X, y)',
            "unknown budget 'weekend'; choose one of: demo, laptop, paper, smoke",
        ),
        Mistake(
            "InvariantClassifier(time_limit=0).fit(X, y)", "time_limit must be None or a number of seconds > 0, got 0"
        ),
        Mistake(
            "InvariantClassifier(predict_orbit_size=0).fit(X, y)",
            "predict_orbit_size must be a whole number ≥ 1, got 0",
        ),
        Mistake(
            'InvariantClassifier(kernel="rbf").fit(X, y)',
            "kernel must be None or a function (num_features, lengthscale, variance) → GPyTorch kernel, got 'rbf'",
        ),
        Mistake(
            "InvariantClassifier(image_shape=(9, 9)).fit(vectors, y)",
            "image_shape=(9, 9) means 81 features per image, but X has 64 features",
        ),
        Mistake(
            'InvariantClassifier(image_shape="8x8").fit(vectors, y)',
            "image_shape must be (H, W), (H, W, Ch) or (Ch, H, W), got '8x8'",
        ),
        Mistake(
            "InvariantClassifier().fit(np.zeros((6, 3, 8, 3)), y)",
            "X: cannot tell which axis of (6, 3, 8, 3) holds the channels: axes 1 and 3 both have length 1, 3 or 4. Say layout='NCHW' or layout='NHWC'",
        ),
        Mistake(
            "InvariantClassifier().predict(X)",
            "This InvariantClassifier instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator.",
            ours=False,
        ),
        Mistake(
            "fitted.predict(X[:, :4])",
            "this model was fitted to images of shape (8, 8), but X holds inputs of shape (4, 8)",
        ),
        Mistake(
            "fitted.predict(vectors[:, :63])",
            "X has 63 features, but InvariantClassifier is expecting 64 features as input.",
            ours=False,
        ),
        Mistake(
            'InvariantRegressor(likelihood="softmax").fit(X, y)',
            "unknown likelihood of a regressor 'softmax'; choose one of: gaussian, poisson",
        ),
        Mistake(
            'InvariantRegressor(likelihood="poisson").fit(X, y - 1)',
            "targets of Poisson must be counts 0, 1, 2, …; 3 are not, for example -1",
        ),
    ],
    "The app: `orbitune app`, once it is open": [
        Mistake(
            "upload notes.zip", "this is not a zip file that can be read: File is not a zip file. Make it anew", 400
        ),
        Mistake(
            "upload no-images.zip",
            "there are no images in this zip; expected one folder per class with images in it (.png, .jpg, .jpeg, .bmp, .tif, .tiff, .webp)",
            400,
        ),
        Mistake(
            "upload one-class.zip",
            "one-class.zip has only cat/; expected one sub-folder per class, at least two, with images in them (.png, .jpg, .jpeg, .bmp, .tif, .tiff, .webp), or train/ and test/ with such sub-folders",
            400,
        ),
        Mistake(
            "upload sizes.zip",
            "the images have 2 different sizes, height×width: 8×8 (cat/a.png); 9×8 (dog/b.png). Expected one size for all: bring them to one, say 64×64, with --resize 64 (in Python load_dataset(…, resize=64), in the app a side)",
            400,
        ),
        Mistake(
            "upload broken.zip",
            "cannot read the image dog/b.png: no image format that Pillow knows. Remove the file, or save it anew",
            400,
        ),
        Mistake(
            "upload outside.zip",
            "the zip holds the path '../cat/a.png', which leads out of its folder; nothing was unpacked",
            400,
        ),
        Mistake("image notes.txt", "this is not an image in a format that Pillow knows: try a PNG or JPEG file", 400),
        Mistake("fit", "choose what to learn from: a known data set, a zip, or a path on this machine", 400),
        Mistake(
            "fit no-such-set",
            "unknown data set (nor is there a folder or file of that name) 'no-such-set'; choose one of: cifar10, digits, fashion-mnist, mnist, pcam, rotated-digits, rotated-mnist",
            400,
        ),
        Mistake("fit no/such/folder", "there is no file or folder no/such/folder (looked from …)", 400),
        Mistake(
            "fit one-class",
            "one-class has only cat/; expected one sub-folder per class, at least two, with images in them (.png, .jpg, .jpeg, .bmp, .tif, .tiff, .webp), or train/ and test/ with such sub-folders",
            400,
        ),
        Mistake(
            "fit holes.npz",
            "holes, train: 1 of 6 images contain NaN or infinite pixels; expected numbers in [0, 1]. Leave these images out, or fill the holes",
            400,
        ),
        Mistake("open no-such-run", "there is no run directory no-such-run", 400),
        Mistake(
            "open unfinished",
            "unfinished holds no finished model (model.json is missing). Either it is not the directory of a run, or the run is unfinished: resume it",
            400,
        ),
        Mistake(
            "open cut-short",
            "cut-short/model.safetensors is not a readable state of Orbitune: Error while deserializing header: invalid header length",
            400,
        ),
    ],
}
