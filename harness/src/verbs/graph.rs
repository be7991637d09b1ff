//! `graph`: what sharing, other orders and safety in all orders do to the memory of a net.

use std::collections::BTreeMap;
use std::fs;

use planlab_dsa::{Bytes, Digest, Instance, Plan};
use planlab_files::TemporaryFolder;
use planlab_graph::{
    Dependencies, Graph, Lowered, OpId, Rehearsal, Safety, lower, lower_for_all_orders, write_jsonl,
};
use planlab_results::table::{Table, Value as Shown};
use planlab_results::{Record, Status, Store};
use planlab_solvers::reorder::{BestOrder, Reordered};
use planlab_workloads::Trace;
use planlab_workloads::formats::write_trace;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::bench::run::open_store;
use crate::cli::{AllocatorArg, GraphArgs};
use crate::inputs::Source;
use crate::inputs::network::{Network, in_order, source_file};
use crate::planning::{Cell, RowContext, Runner, Samples, Subject, planners, record};
use crate::shell::JSON_VERSION;
use crate::shell::clock::now_ns;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, note};
use crate::shell::signals::cancel_token;
use crate::shell::target::{Target, scratch};

/// No sharing, in-place alone, sharing alone, and both, as a framework's note on memory has them.
const MEANS: [(&str, &str); 4] = [
    ("no optimisation", "bump"),
    ("in-place", "mxnet-sharing/in-place-only"),
    ("sharing", "mxnet-sharing/sharing-only"),
    ("both", "mxnet-sharing"),
];

pub(crate) fn run(args: &GraphArgs, output: Output) -> Verdict {
    if args.shape.allocator_model == Some(AllocatorArg::Chainer) {
        return Err(Failure::usage(
            "Chainer's requests are no graph: `graph` takes the ideal allocator alone",
        ));
    }
    if let Some(path) = &args.output {
        output.refuse_stdout("graph", path)?;
    }
    planners::find(&args.planner)?;
    let network = Network::resolve(&args.graph, &args.shape, args.batch)?;
    let (key, graph) = (network.key(network.batch()), network.graph(network.batch())?);
    let target = args.output.as_ref().map(|path| Target::open(path)).transpose()?;
    let scratch = scratch()?;
    let store = args.out.as_ref().map(|folder| open_store(folder, &|text| note(text))).transpose()?;
    let mut study = Study {
        args,
        key,
        dependencies: dependencies(&graph),
        graph: &graph,
        runner: Runner::new(cancel_token(), Samples::ONCE)?,
        scratch: &scratch,
        store,
        known: BTreeMap::new(),
        rows: Vec::new(),
    };
    let best = study.all()?;
    #[cfg(feature = "reports")]
    if let Some(store) = &mut study.store {
        store.compact()?;
    }
    let exit = study.exit();
    let written = match target {
        Some(target) if exit != Exit::Interrupted => {
            target.write(write_jsonl(&in_order(&graph, &best)?).as_bytes())
        }
        _ => Ok(()),
    };
    match args.output.as_deref() {
        // The graph is what stdout has.
        Some("-") => note(study.text().trim_end()),
        _ => output.put(&study.object(), &study.text())?,
    }
    written.map(|()| exit)
}

/// What must come before what; operations of one stream follow each other if there are several streams.
fn dependencies(graph: &Graph) -> Dependencies {
    let mut streams = graph.operations().iter().map(|operation| operation.stream);
    let first = streams.next();
    match streams.all(|stream| Some(stream) == first) {
        true => Dependencies::of(graph),
        false => Dependencies::with_streams(graph),
    }
}

/// One plan of the net, and what it came to.
struct Row {
    /// What was asked.
    name: String,
    /// What the key of the workload ends in; empty for the net itself.
    suffix: String,
    record: Record,
    /// Random legal orders in which the plan was run, and in how many two buffers came to lie in one place.
    orders: Option<(u64, u64)>,
}

struct Study<'a> {
    args: &'a GraphArgs,
    key: String,
    graph: &'a Graph,
    dependencies: Dependencies,
    runner: Runner,
    scratch: &'a TemporaryFolder,
    store: Option<Store>,
    /// Rows and plans by problem and planner: other orders can be the same problem, and a store has one row of it.
    known: BTreeMap<(Digest, String), (Record, Option<Plan>)>,
    rows: Vec<Row>,
}

/// How an order is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// The best of the greedy rules.
    Greedy,
    /// Local search from there.
    LocalSearch,
    /// The exact search from there.
    Best,
}

impl Method {
    const fn name(self) -> &'static str {
        match self {
            Self::Greedy => "greedy",
            Self::LocalSearch => "local-search",
            Self::Best => "best",
        }
    }

    fn order(self, graph: &Graph, dependencies: &Dependencies, args: &GraphArgs) -> Reordered {
        let mut rng = ChaCha8Rng::seed_from_u64(args.limits.seed);
        let search = BestOrder::default().with_work(args.order_work);
        match self {
            Self::Greedy => search.with_work(0).with_sets(0).order(graph, dependencies, &mut rng),
            Self::LocalSearch => search.with_sets(0).order(graph, dependencies, &mut rng),
            Self::Best => search.order(graph, dependencies, &mut rng),
        }
    }
}

/// A trace of the net under one order and rule.
struct Variant {
    /// What the key of the workload ends in; empty for the net itself.
    suffix: String,
    lowered: Lowered,
}

impl Study<'_> {
    /// Every plan; gives the order with the lowest load.
    fn all(&mut self) -> Result<Vec<OpId>, Failure> {
        let own = self.graph.order();
        let plain = Variant { suffix: String::new(), lowered: lower(self.graph, &own)? };
        for (name, planner) in MEANS {
            self.plan(&plain, name, planner, false)?;
        }
        let planner = self.args.planner.clone();
        self.plan(&plain, "offsets", &planner, true)?;
        for (name, suffix, safety) in [
            ("safe, by pairs", "safe-pairs", Safety::KeepApart),
            ("safe, by ranges", "safe-ranges", Safety::Widened),
        ] {
            if safety == Safety::KeepApart && !planners::honours(&planner).apart {
                note(&format!("{name}: {planner} keeps no pairs apart; left out"));
                continue;
            }
            let lowered = lower_for_all_orders(self.graph, &own, &self.dependencies, safety)?;
            let variant = Variant { suffix: suffix.to_owned(), lowered };
            self.plan(&variant, name, &planner, true)?;
        }
        self.orders(own, plain.lowered.instance.load().bytes)
    }

    /// Plans in other orders; gives the one with the lowest load.
    fn orders(&mut self, own: Vec<OpId>, load: Bytes) -> Result<Vec<OpId>, Failure> {
        let mut best = (load, own);
        for method in [Method::Greedy, Method::LocalSearch, Method::Best] {
            if self.runner.cancel().is_cancelled() {
                break;
            }
            let found = method.order(self.graph, &self.dependencies, self.args);
            let proof = if found.is_optimal() { ", least load" } else { "" };
            let name = format!("order: {}{proof}", method.name());
            let suffix = format!("order-{}", method.name());
            let variant = Variant { suffix, lowered: lower(self.graph, &found.order)? };
            let planner = self.args.planner.clone();
            self.plan(&variant, &name, &planner, false)?;
            if found.load < best.0 {
                best = (found.load, found.order);
            }
        }
        Ok(best.1)
    }

    fn plan(
        &mut self,
        variant: &Variant,
        name: &str,
        planner: &str,
        is_rehearsed: bool,
    ) -> Result<(), Failure> {
        if self.runner.cancel().is_cancelled() {
            return Ok(());
        }
        let key = match variant.suffix.as_str() {
            "" => self.key.clone(),
            suffix => format!("{}/{suffix}", self.key),
        };
        let Lowered { instance, labels, .. } = &variant.lowered;
        let known = (instance.digest(), planner.to_owned());
        if !self.known.contains_key(&known) {
            let trace = Trace::new(instance.clone(), labels.clone());
            let file = self.scratch.path().join(format!("plan{}.csv", variant.suffix));
            fs::write(&file, write_trace(&trace))?;
            let (mut record, plan) = self.cell(&source_file(&key, file), instance, planner)?;
            self.keep(&trace, &mut record, plan.as_ref())?;
            self.known.insert(known.clone(), (record, plan));
        }
        let Some((record, plan)) = self.known.get(&known).cloned() else { return Ok(()) };
        let record = Record { workload: key.as_str().into(), ..record };
        if !record.status.is_answer() {
            note(&format!("{name}: {planner}: {}: {}", record.status.name(), record.reason));
        }
        let orders = plan.filter(|_| is_rehearsed).map(|plan| self.rehearse(variant, &plan));
        self.rows.push(Row { name: name.to_owned(), suffix: variant.suffix.clone(), record, orders });
        Ok(())
    }

    fn cell(
        &self,
        source: &Source,
        instance: &Instance,
        planner: &str,
    ) -> Result<(Record, Option<Plan>), Failure> {
        let digest = instance.digest();
        let subject = Subject { source, instance, digest, hints: None };
        let cell = Cell::of(source, planner, &self.args.limits);
        let started = now_ns();
        let judged = self.runner.run(&subject, std::slice::from_ref(&cell), None)?;
        let judgement =
            judged.first().ok_or_else(|| Failure::usage("the child has no answer to its cell"))?;
        let plan = judgement.plan.as_ref().map(|plan| plan.as_plan().clone());
        Ok((record(&cell, &subject, judgement, None, RowContext::of(&self.runner, started)), plan))
    }

    #[cfg(feature = "reports")]
    fn keep(&mut self, trace: &Trace, row: &mut Record, plan: Option<&Plan>) -> Result<(), Failure> {
        let Some(store) = &mut self.store else { return Ok(()) };
        store.put_instance(&trace.instance, &trace.labels)?;
        row.plan = plan.map(|plan| store.put_plan(plan)).transpose()?.map(|digest| digest.to_string());
        Ok(store.append(row)?)
    }

    #[cfg(not(feature = "reports"))]
    fn keep(&mut self, _: &Trace, row: &mut Record, _: Option<&Plan>) -> Result<(), Failure> {
        let Some(store) = &mut self.store else { return Ok(()) };
        Ok(store.append(row)?)
    }

    /// In how many of the random legal orders the plan fails.
    fn rehearse(&self, variant: &Variant, plan: &Plan) -> (u64, u64) {
        let rehearsal = Rehearsal::new(self.graph, &self.dependencies, &variant.lowered, plan);
        let mut rng = ChaCha8Rng::seed_from_u64(self.args.limits.seed);
        let one = std::num::NonZeroUsize::MIN;
        let mut fails = 0;
        for run in 0..self.args.orders {
            if self.runner.cancel().is_cancelled() {
                return (run, fails);
            }
            fails += u64::from(rehearsal.run(&mut rng, one).is_err());
        }
        (self.args.orders, fails)
    }

    fn exit(&self) -> Exit {
        let any = |test: &dyn Fn(Status) -> bool| self.rows.iter().any(|row| test(row.record.status));
        let is_unsafe =
            |row: &Row| row.suffix.starts_with("safe-") && row.orders.is_some_and(|(_, fails)| fails > 0);
        if self.runner.cancel().is_cancelled() || any(&|status| status == Status::Interrupted) {
            Exit::Interrupted
        } else if any(&Status::is_lie) || self.rows.iter().any(is_unsafe) {
            Exit::Invalid
        } else if any(&|status| !status.is_answer()) {
            Exit::Incomplete
        } else {
            Exit::Complete
        }
    }

    fn text(&self) -> String {
        let mut table = Table::new(&["plan", "planner", "load", "height", "status", "fails in"]);
        for row in &self.rows {
            let record = &row.record;
            let orders = row.orders.map(|(orders, fails)| format!("{fails} of {orders} orders"));
            table.push(vec![
                Shown::text(&row.name),
                Shown::text(&record.planner),
                Shown::Bytes(record.load),
                Shown::or_missing(record.height.map(Shown::Bytes)),
                Shown::text(record.status.name()),
                Shown::text(orders.unwrap_or_default()),
            ]);
        }
        let (operations, tensors) = (self.graph.operations().len(), self.graph.tensors().len());
        format!("{}: {operations} operations, {tensors} tensors\n\n{}", self.key, table.render())
    }

    fn object(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let record = &row.record;
            json!({
                "plan": row.name,
                "workload": record.workload,
                "planner": record.planner,
                "buffers": record.buffers,
                "load": record.load,
                "height": record.height,
                "bound": record.bound,
                "status": record.status.name(),
                "orders": row.orders.map(|(orders, _)| orders),
                "orders_failed": row.orders.map(|(_, fails)| fails),
            })
        });
        json!({
            "version": JSON_VERSION,
            "workload": self.key,
            "operations": self.graph.operations().len(),
            "tensors": self.graph.tensors().len(),
            "plans": rows.collect::<Vec<_>>(),
        })
    }
}
