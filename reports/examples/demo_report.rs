//! Makes a store from small instances and simple plans, and a report from the store.
//!
//! ```text
//! cargo run -p planlab-reports --example demo_report -- STORE OUT
//! ```

use std::time::Instant;

use planlab_dsa::{Buffer, Bytes, Evidence, Instance, Label, Labels, LiveRange, Offset, Plan, Scope, Stop};
use planlab_reports::{PoolTotal, Report, ReportOptions};
use planlab_results::{Lane, Point, Provenance, Record, SCHEMA, Status, Store};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let (Some(store), Some(out)) = (args.next(), args.next()) else {
        return Err("usage: demo_report STORE OUT".into());
    };
    fill(&store)?;
    let mut options = ReportOptions::default();
    options.baseline = "first-fit/width".to_owned();
    options.command = "cargo run -p planlab-reports --example demo_report -- STORE OUT".to_owned();
    for (net, batch) in nets() {
        let kept = 3_000_000 * net.len() as u64;
        let pool = 1_500_000 * batch;
        let total = PoolTotal { parameters: Some(kept), pool: Some(pool), ..PoolTotal::default() };
        options.totals.insert(format!("chainer/{net}/train/b{batch}"), total);
    }
    let start = Instant::now();
    let written = Report::from_store(&store, options)?.write(&out)?;
    let seconds = start.elapsed().as_secs_f64();
    // The example is a program, so it may print.
    #[expect(clippy::print_stderr, reason = "says where the report is")]
    {
        eprintln!("{} pages, {} files in {out} after {seconds:.2} s", written.pages, written.files);
    }
    Ok(())
}

fn nets() -> Vec<(&'static str, u64)> {
    ["alexnet", "googlenet", "resnet50"].into_iter().flat_map(|net| [32, 64, 128].map(|b| (net, b))).collect()
}

fn fill(dir: &str) -> Result<(), Failure> {
    let mut store = Store::open(dir)?;
    for (net, batch) in nets() {
        let layers = 10 * u32::try_from(net.len())?;
        run_all(&mut store, &format!("chainer/{net}/train/b{batch}"), chain(layers, batch))?;
    }
    for count in [10_u32, 30, 100, 300, 1000, 3000, 10_000] {
        for seed in [1, 2] {
            run_all(&mut store, &format!("synthetic/uniform/n{count}/s{seed}"), uniform(count, seed))?;
        }
    }
    store.append(&crash(dir))?;
    store.compact()?;
    Ok(())
}

/// A net's forward and backward pass: activations wait for their gradients.
fn chain(layers: u32, batch: u64) -> (Instance, Labels) {
    let (mut buffers, mut labels) = (Vec::new(), Labels::default());
    let mut put = |size: u64, start: u32, end: u32, category: &str| {
        let live = LiveRange::new(start, end).expect("starts below its end");
        buffers.push(Buffer::new(Bytes::new(size.max(1) * 512), live));
        let name = format!("{category}{start}");
        labels.buffers.push(Label { name, category: Some(category.to_owned()), ..Label::default() });
    };
    for layer in 0..layers {
        let size = batch * u64::from((layers - layer) * 7 % 40 + 5);
        let back = 2 * layers - layer;
        put(size, layer, back, "activation");
        put(size, back - 1, back + 1, "gradient");
        put(batch * u64::from(layer * 13 % 50 + 1), layer, layer + 1, "workspace");
        put(batch * u64::from(layer * 5 % 30 + 1), back, back + 1, "workspace");
    }
    (Instance::from_buffers(buffers).expect("valid"), labels)
}

/// Buffers with sizes and live ranges from a small generator.
fn uniform(count: u32, seed: u64) -> (Instance, Labels) {
    let mut state = seed;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let buffer = |_| {
        let start = u32::try_from(next(u64::from(count))).expect("is below the count");
        let end = start + 1 + u32::try_from(next(20)).expect("is below 20");
        Buffer::new(Bytes::new(64 * (next(4000) + 1)), LiveRange::new(start, end).expect("not empty"))
    };
    let instance = Instance::from_buffers((0..count).map(buffer).collect()).expect("valid");
    (instance, Labels::numbered(count as usize))
}

type Order = fn(&Instance) -> Vec<usize>;

fn run_all(store: &mut Store, workload: &str, (instance, labels): (Instance, Labels)) -> Result<(), Failure> {
    let digest = store.put_instance(&instance, &labels)?.to_string();
    let planners: [(&str, Order); 4] = [
        ("bump", |_| Vec::new()),
        ("first-fit/start", |instance| by(instance, |b| u64::from(b.live.start().get()))),
        ("first-fit/size", |instance| by(instance, |b| u64::MAX - b.size.get())),
        ("first-fit/width", |instance| by(instance, |b| u64::from(u32::MAX - b.live.width()))),
    ];
    for (planner, order) in planners {
        let start = Instant::now();
        let plan = if planner == "bump" { bump(&instance) } else { first_fit(&instance, &order(&instance)) };
        let took = u64::try_from(start.elapsed().as_nanos())?;
        let verified = instance.verify(plan)?;
        let mut record = row(workload, planner, &instance, &digest);
        record.height = Some(verified.height().get());
        record.status =
            if verified.height() == instance.load().bytes { Status::Optimal } else { Status::Feasible };
        record.samples_ns = vec![took, took + 10, took + 30];
        record.trajectory = vec![Point { elapsed_ns: took, height: record.height, bound: record.bound }];
        record.plan = Some(store.put_plan(verified.as_plan())?.to_string());
        store.append(&record)?;
    }
    Ok(())
}

fn by(instance: &Instance, key: fn(&Buffer) -> u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..instance.len()).collect();
    order.sort_by_key(|&at| (key(&instance.buffers()[at]), at));
    order
}

fn bump(instance: &Instance) -> Plan {
    let mut top = 0;
    let offsets = instance.buffers().iter().map(|buffer| {
        top += buffer.size.get();
        Offset::new(top - buffer.size.get())
    });
    Plan::from_offsets(offsets.collect::<Vec<_>>())
}

fn first_fit(instance: &Instance, order: &[usize]) -> Plan {
    let buffers = instance.buffers();
    let mut placed: Vec<usize> = Vec::new();
    let mut offsets = vec![Offset::default(); buffers.len()];
    for &at in order {
        let mut offset = 0;
        // Sorted by offset, so the first gap is the lowest.
        for &other in placed.iter().filter(|&&other| buffers[other].live.overlaps(buffers[at].live)) {
            let below: Offset = offsets[other];
            if offset + buffers[at].size.get() <= below.get() {
                break;
            }
            offset = offset.max(below.get() + buffers[other].size.get());
        }
        offsets[at] = Offset::new(offset);
        let place = placed.partition_point(|&other| offsets[other].get() <= offset);
        placed.insert(place, at);
    }
    Plan::from_offsets(offsets)
}

fn row(workload: &str, planner: &str, instance: &Instance, digest: &str) -> Record {
    let load = instance.load().bytes.get();
    Record {
        schema: SCHEMA,
        cell: format!("{workload}:{planner}"),
        repetition: 0,
        lane: Lane::Timing,
        suite: "demo".to_owned(),
        workload: workload.into(),
        instance: digest.to_owned(),
        buffers: instance.len() as u64,
        planner: planner.to_owned(),
        planner_version: "demo".to_owned(),
        parameters: "{}".to_owned(),
        seed: 0,
        wall_limit_ns: Some(10_000_000_000),
        memory_limit_bytes: Some(4 << 30),
        work_limit: None,
        target_bytes: None,
        mechanism: "none".to_owned(),
        status: Status::Feasible,
        stop: Some(Stop::Finished),
        reason: String::new(),
        exit_code: Some(0),
        signal: None,
        stderr_tail: String::new(),
        height: None,
        load,
        relaxed_load: load,
        bound: load,
        bound_evidence: Evidence::Load,
        bound_scope: Scope::NoHandOver,
        hand_overs: 0,
        samples_ns: Vec::new(),
        cpu_ns: None,
        work: instance.len() as u64,
        peak_rss_bytes: None,
        reported_ns: None,
        orders_run: None,
        orders_failed: None,
        order_bound: None,
        bound_without_in_place: None,
        trajectory: Vec::new(),
        plan: None,
        started_ns: 0,
        provenance: Provenance {
            host: "demo".to_owned(),
            cpu: "demo CPU".to_owned(),
            ..Provenance::default()
        },
    }
}

/// A row of a planner that crashed.
fn crash(dir: &str) -> Record {
    let (instance, _) = uniform(10, 1);
    let mut record = row("synthetic/uniform/n10/s1", "crasher", &instance, &instance.digest().to_string());
    record.status = Status::Crashed;
    record.signal = Some(11);
    record.reason = "killed by SIGSEGV".to_owned();
    record.stderr_tail = format!("reading {dir}\nsegmentation fault <here>");
    record
}
