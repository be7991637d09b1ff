# planlab's recipes; `just` lists them.

set shell := ["bash", "-euo", "pipefail", "-c"]

store := "results/store"
pages := "reports/out"
planlab := "cargo run --quiet --release --package planlab --"

# Where cargo puts release builds; the shell of a recipe asks cargo.
target := '"$(cargo metadata --no-deps --format-version 1 | jq -r .target_directory)"/release'

# list the recipes
default:
    @just --list --unsorted

# The libraries are built apart from the binary, so that they have no solver that they do not need.
[group('build'), doc('build the release binary, and the libraries for `planlab run` and for C')]
build:
    cargo build --release --package planlab
    cargo build --release --package planlab-interpose --package planlab-capi

[group('build'), doc('pack planlab-dsa, -graph, -solvers (and -files) as a registry would get them, and build a program on what was packed')]
package *FOLDER:
    scripts/package {{FOLDER}}

[group('build'), doc('start a planner: one file with its page, its tests and its place in the registry')]
new-planner NAME:
    scripts/new-planner {{NAME}}

# Runs what writes rows, then what shows them, also if a cell has no answer (exit code 3); the code is passed on.
[private]
run-and-show RUN SHOW:
    code=0; {{RUN}} || code=$?; case $code in 2 | 130) ;; *) {{SHOW}} ;; esac; exit "$code"

[private]
bench-and-report SUITE NAME *ARGS: (run-and-show (planlab + " bench --suite " + SUITE + " --out " + store + NAME + " " + ARGS) ("just report " + store + NAME + " " + pages + NAME))

[group('bench'), doc('run every suite of the main job (resumes by itself), then write the report')]
bench-all *ARGS: build (bench-and-report "all" "" ARGS)

[group('bench'), doc('run the smoke suite (under a minute after the build), then write its report')]
bench-smoke *ARGS: build (bench-and-report "smoke" "-smoke" ARGS)

[group('bench'), doc('nets in training that do not fit: every scheduler of the suite SUITE (offload/pooch takes about 10 minutes), then the report')]
bench-offload SUITE="offload/pooch" *ARGS: build (bench-and-report SUITE "-offload" ARGS)

# Hours with all of it; it resumes by itself. PLANLAB_PLANNERS (docs/external-planners.md) and PLANLAB_CORPUS say where
# the other planners and the external instances are; what they do not give is "not run". ARGS go to `bench`.
[group('bench'), doc('ours beside MiniMalloc, idealloc and CP-SAT in one run, then the tables of ratios')]
bench-exact *ARGS: build (run-and-show (planlab + " bench --suite exact --out " + store + "-exact " + ARGS) ("just ratios " + store + "-exact"))

[group('bench'), doc('write the tables of bench-exact: our times over theirs, heights and bounds')]
ratios RESULTS=(store + "-exact") OUT=(pages + "-exact"):
    {{planlab}} ratios {{RESULTS}} --of portfolio --of exact --over external/minimalloc --over external/cp-sat-fit \
        --over external/minimalloc-minimise --over external/idealloc --over external/cp-sat -o {{OUT}}

# ARGS go to `bench`.
[group('bench'), doc('how time and memory grow from 1,000 to 1,000,000 buffers: the suite, then its tables')]
bench-scale *ARGS: build (run-and-show (planlab + " bench --suite scale --out " + store + "-scale " + ARGS) (planlab + " scale " + store + "-scale -o " + pages + "-scale"))

# Sharing, other orders, plans that hold in all orders (run in ORDERS of them), memory by batch and by workspace limit.
[group('bench'), doc('every net of `list models` from its operations to its memory; then the report')]
bench-models ORDERS="10000": build (run-and-show ("scripts/bench-models " + target + "/planlab " + store + "-models " + ORDERS) ("just report " + store + "-models " + pages + "-models"))

# The frameworks come from scripts/setup-frameworks, which ./setup never calls. All of it takes hours, the most important
# first; `--limit 2400` has inference of all nets and training of the light ones. ARGS go to scripts/frameworks/bench.py:
# --quick, --limit SECONDS, --stage GLOB, --net GLOB, --contender NAME, --reps N.
[group('bench'), doc('PyTorch and onnxruntime, unchanged, on plans and under other allocators (resumes by itself), then the report')]
bench-frameworks *ARGS: build (run-and-show ("scripts/setup-frameworks; python3 scripts/frameworks/bench.py --out " + store + "-frameworks " + ARGS + " --planlab " + target + "/planlab") ("just report " + store + "-frameworks " + pages + "-frameworks"))

# PyTorch comes from scripts/setup-torch (6 GB), and the package from this tree. All of it takes hours; `--quick` takes some minutes
# and says little. ARGS go to scripts/frameworks/budget.py: --quick, --limit SECONDS, --net NET, --contender NAME, --reps N.
[group('bench'), doc('training steps of PyTorch within less and less memory: planlab beside its own ways (resumes by itself), then the report')]
bench-budget *ARGS: build (run-and-show ("scripts/setup-torch && target/torch/bin/pip install --quiet ./python && python3 scripts/frameworks/budget.py --out " + store + "-budget " + ARGS + " --planlab " + target + "/planlab") ("just report " + store + "-budget " + pages + "-budget"))

# It fails above 2 s, below 30 frames a second, or if the console says anything. ARGS go to scripts/viewer-bench: a page of yours,
# `--pictures DIR`. It needs Chromium, which ./setup does not install.
[group('bench'), doc('the page of 100,000 buffers and two plans in a headless Chromium: seconds until it is there, frames a second (a minute)')]
bench-viewer *ARGS: build
    scripts/viewer-bench --planlab {{target}}/planlab {{ARGS}}

# PLANLAB_PYTHON has NumPy (/usr/bin/python3 after ./setup). ARGS go to scripts/bench-python.
[group('bench'), doc('planning 100,000 buffers from NumPy over the time of the Rust call (under a minute after the build); fails above 1.1')]
bench-python *ARGS:
    cargo build --release --package planlab-python
    "${PLANLAB_PYTHON:-/usr/bin/python3}" -B scripts/bench-python --library {{target}}/lib_native.so {{ARGS}}

# ARGS go to scripts/bench-c. It takes MiniMalloc's instance A, too, if PLANLAB_CORPUS names the external instances.
[group('bench'), doc('the C++ example over the Rust call that it makes, in turns (a minute after the build); fails above 1.02')]
bench-c *ARGS: build
    cargo build --release --package planlab-capi --example plan_calls
    scripts/bench-c --target {{target}} {{ARGS}}

# Thresholds of its four rules, memory by its free list and with offsets: a CSV line each on stdout, a summary on stderr.
# CANDIDATES are `articulation` or `scored`.
[group('bench'), doc("the patent's search for checkpoints on every net (seconds after the build)")]
bench-checkpoints CANDIDATES="articulation" BATCH="32":
    cargo run --quiet --package planlab-workloads --example training_nets -- {{BATCH}} | \
        cargo run --quiet --package planlab-solvers --example compare_checkpoints -- {{CANDIDATES}}

[group('bench'), doc('footprint over ten training iterations of seq2seq with other sentences each, by pool and planned; for the report')]
iterations OUT=store: build
    for batch in 32 64 128 256; do \
        {{planlab}} simulate $(seq -f "model/seq2seq/train/b$batch/iteration%g" 0 9) --allocator 'cupy*' \
            --allocator pytorch-caching --allocator tensorflow-bfc --allocator "profile-guided*" --out {{OUT}}; \
    done

# Six recorded nets and seq2seq's iterations; rows with a README in OUT, and what is judged. MODE `quick` takes a minute.
[group('bench'), doc("replays on this machine's memory")]
replay-host OUT="" MODE="full":
    scripts/replay-host "{{OUT}}" {{MODE}}

# ARGS go to `planlab diff` (--suite, --reps, ...).
[group('bench'), doc('measure two binaries in turns on this machine and say what changed')]
diff-builds A B *ARGS: build
    {{planlab}} diff --interleave --a-binary {{A}} --b-binary {{B}} --out {{store}}-diff/$(date +%Y-%m-%dT%H%M%S) {{ARGS}}

[group('bench'), doc('criterion benchmarks (all, or those whose name holds FILTER)')]
bench FILTER="":
    cargo bench --package planlab-dsa --package planlab-solvers --package planlab-workloads -- {{FILTER}}
    cargo bench --package planlab --no-default-features --features mallocs --bench allocators -- {{FILTER}}

[group('bench'), doc('the figures of the README and of docs/run.md, from committed records and workloads')]
figures: build
    scripts/figures {{target}}/planlab

[group('bench'), doc('write the report of what was measured so far')]
report RESULTS=store OUT=pages:
    {{planlab}} report {{RESULTS}} -o {{OUT}}
    @echo "open {{OUT}}/index.html"

[group('gpu'), doc('pack what replays on a GPU need into FOLDER (under 64 MiB), for a machine with a driver and nothing else')]
pack-gpu *FOLDER:
    scripts/pack-gpu {{FOLDER}}

# `simulated-cuda` tries the recipe without a GPU.
[group('gpu'), doc('ten short steps that say whether the figures of a GPU can be trusted')]
smoke-gpu DEVICE="cuda:0":
    scripts/smoke-gpu {{DEVICE}}

# Recorded nets by plans, pools and the driver's allocators, in steps that resume, most important first; none begins after LIMIT
# seconds. `simulated-cuda` tries the recipe without a GPU, ASSEMBLE=1 writes the record of what is there.
[group('gpu'), doc('the record of a GPU')]
replay-gpu DEVICE="cuda:0" LIMIT="":
    scripts/replay-gpu {{DEVICE}} {{LIMIT}}

[group('test'), doc('run all tests, even if one fails')]
test *ARGS:
    cargo test --workspace --features planlab/debug-checks --no-fail-fast {{ARGS}}
    @if command -v python3 >/dev/null; then for tests in scripts scripts/frameworks; do python3 -B -m unittest discover --quiet $tests || exit 1; done; \
     else echo "test: those of scripts are skipped, python3 is missing"; fi

# The environment is python/.venv. It is skipped, and says so, if that cannot be made.
[group('test'), doc('the tests of the Python package on a wheel, in a virtual environment')]
test-python *TESTS:
    scripts/test-python {{TESTS}}

[group('test'), doc('formatting, lints, the text, the lean build, and licences if cargo-deny is installed')]
check:
    scripts/prose
    scripts/house --check
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --features planlab/debug-checks -- -D warnings
    cargo clippy --package planlab --no-default-features --features system-zstd -- -D warnings
    @if command -v cargo-deny >/dev/null; then cargo deny check bans licenses sources; \
     else echo "check: cargo-deny is not installed, licences not checked (cargo install cargo-deny)"; fi

[group('test'), doc('write the golden heights and the table of options again; say why in CHANGELOG.md under "Affects results"')]
bless:
    PLANLAB_BLESS=1 cargo test --quiet --workspace --features planlab/debug-checks --test it -- golden:: book::options::
    @git --no-pager diff --stat -- harness/tests/golden docs

# Other random cases each time, four times as many if there are hundreds, and all schedulers on all nets; then hostile
# input and signals.
[group('test'), doc('all tests RUNS times, before a release (hours)')]
test-deep RUNS="20":
    for run in $(seq {{RUNS}}); do echo "test-deep: run $run of {{RUNS}}"; PLANLAB_TEST_DEEP=1 just test --quiet; done
    just hostile

# Damaged files, senseless parameters, full disks, signals. ARGS go to the script (--seed N, --only GROUP).
[group('test'), doc('more than a thousand hostile cases against the command line')]
hostile *ARGS: build
    scripts/hostile {{ARGS}} {{target}}/planlab

# CPython's tests, SQLite, a compiler, a shell, 64 threads: the same outputs, and what it costs. Runs stress-ng and
# libpython3-testsuite if they are installed.
[group('test'), doc('programs of others with `planlab run` and without, in turns (some minutes)')]
check-run *ARGS: build
    cargo test --package planlab-interpose --test it
    python3 -B scripts/transparency/check.py --planlab {{target}}/planlab {{ARGS}}

# Every schedule is validated, and again from its file. Says how many there are of each scheduler; ends with 1 if one has none.
[group('test'), doc('every scheduler on every net, with three batches on three machines (20 minutes)')]
check-schedules OUT=(store + "-schedules"): build
    code=0; {{planlab}} bench --suite offload/every --jobs 2 --out {{OUT}} || code=$?; \
    if [ "$code" -ne 0 ] && [ "$code" -ne 3 ]; then exit "$code"; fi
    {{planlab}} audit {{OUT}}
    {{planlab}} query {{OUT}} --csv "SELECT scheduler, count(*) AS cells, count(iteration_ns) AS valid, sum(CASE WHEN swapped + recomputed > 0 THEN 1 ELSE 0 END) AS with_something_gone FROM schedules GROUP BY scheduler ORDER BY scheduler" | \
        awk -F, '{ print } NR > 1 { cells += $2; valid += $3; if ($3 == 0) none = none " " $1 } END { print "all," cells "," valid; if (none != "") { print "no schedule by" none > "/dev/stderr"; exit 1 } }'

[group('test'), doc('whether `diff` finds a slowdown of 20 % that was planted, and nothing between equal builds (a benchmark of minutes)')]
diff-selftest *ARGS:
    scripts/diff-selftest {{ARGS}}

# Allocators of dsa, plans and patterns, on memory of the heap. It is skipped, and says so, without a nightly that has Miri.
[group('test'), doc('Miri over what hands out memory and writes it')]
miri:
    @if cargo +nightly miri --version >/dev/null 2>&1; then \
       export MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-disable-isolation" PROPTEST_CASES=4; \
       cargo +nightly miri test --package planlab-dsa --lib online; \
       cargo +nightly miri test --package planlab-replay --no-default-features --lib -- pattern sequence; \
       cargo +nightly miri test --package planlab-replay --no-default-features --test it -- planned::; \
       cargo +nightly miri test --package planlab-interpose --no-default-features --lib -- calls:: plans:: machine::; \
     else echo "miri: skipped, a nightly toolchain with miri is missing (rustup +nightly component add miri)"; fi

# Replays, plans under programs and calls from C. It is skipped, and says so, without a nightly toolchain.
[group('test'), doc('the tests of what touches memory, under the address sanitizer')]
asan TARGET="x86_64-unknown-linux-gnu":
    @if cargo +nightly --version >/dev/null 2>&1; then \
       export RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 CARGO_TARGET_DIR=target/asan; \
       run() { cargo +nightly test --target {{TARGET}} "$@"; }; \
       run --package planlab-replay --no-default-features --lib --tests; \
       run --package planlab --no-default-features --test it hostile::; \
       run --package planlab-interpose --no-default-features --lib; \
       run --package planlab-capi --test it -- hostile:: same_as_rust:: concurrent::; \
     else echo "asan: skipped, a nightly toolchain is missing (rustup toolchain install nightly)"; fi

[group('test'), doc('fuzz a parser for SECONDS (needs nightly and cargo-fuzz; skipped, and said so, without them)')]
fuzz TARGET="trace" SECONDS="60" SEEDS="":
    @if cargo fuzz --version >/dev/null 2>&1 && rustc --version | grep -q nightly; then \
       cargo fuzz run {{TARGET}} fuzz/corpus/{{TARGET}} {{SEEDS}} -- -max_total_time={{SECONDS}}; \
     else echo "fuzz: skipped, cargo-fuzz or a nightly toolchain is missing; the corpus is replayed by \`just test\`"; fi
