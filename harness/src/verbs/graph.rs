//! `graph`: studies what sharing, other orders and safety in all orders do to the memory of a net.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use planlab_dsa::{Budget, Bytes, Digest, Instance, Labels, Plan, VerifiedPlan};
use planlab_files::TemporaryFolder;
use planlab_graph::{
    Dependencies, Graph, Lowered, OpId, OrderError, Rehearsal, Safety, lower_for_all_orders, lower_graph,
    write_jsonl,
};
use planlab_results::table::{CellValue as Shown, Table};
use planlab_results::{Record, Status, Store};
use planlab_solvers::reorder::{BestOrder, HandOvers, Orders, Reordered, Stage};
use planlab_workloads::Trace;
use planlab_workloads::formats::write_trace;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::bench::book::open_store;
use crate::cli::GraphArgs;
use crate::inputs::Source;
use crate::inputs::hints::{self, Hints};
use crate::inputs::network::{Network, in_order, source_file};
use crate::kinds::placement::{Cell, Runner, Samples, Subject, planners};
use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::{Output, print_note};
use crate::shell::progress::Progress;
use crate::shell::signals::cancel_token;
use crate::shell::target::{Target, scratch_folder};
use crate::shell::text::Text;

/// No sharing, in-place alone, sharing alone, and both, as in a framework's note on memory.
const MEANS: [(&str, &str); 4] = [
    ("no optimisation", "bump"),
    ("in-place", "mxnet-sharing/in-place-only"),
    ("sharing", "mxnet-sharing/sharing-only"),
    ("both", "mxnet-sharing"),
];

/// Default wall time of the search for orders.
const SEARCH: Duration = Duration::from_secs(60);

/// The number of plans of a study: four means, one by offsets, two safe ones, three orders.
const PLANS: u64 = 10;

pub(crate) fn run(args: &GraphArgs, output: Output) -> Verdict {
    if let Some(path) = &args.output {
        output.refuse_stdout("graph", path)?;
    }
    planners::find(&args.planner)?;
    let network = Network::resolve_argument(&args.graph, &args.shape, args.batch)?;
    network.refuse_requests("graph")?;
    let (key, graph) =
        (network.key_at(network.batch_of_argument()), network.graph_at(network.batch_of_argument())?);
    let target =
        args.output.as_ref().map(|path| Target::open_argument(path, [args.graph.as_str()])).transpose()?;
    let scratch = scratch_folder()?;
    let store = args.out.as_deref().map(open_store).transpose()?;
    let mut study = Study {
        args,
        key,
        dependencies: free_dependencies(&graph),
        graph: &graph,
        runner: Runner::new(cancel_token(), Samples::ONCE)?,
        scratch: &scratch,
        store,
        hand_overs: match planners::honours(&args.planner).in_place {
            true => HandOvers::Relaxed,
            false => HandOvers::Counted,
        },
        known: BTreeMap::new(),
        rows: Vec::new(),
        bar: Progress::new(PLANS, "plans"),
    };
    let best = study.plan_all()?;
    study.bar.finish_and_clear();
    #[cfg(feature = "reports")]
    if let Some(store) = &mut study.store {
        store.compact()?;
    }
    let exit = study.exit_code();
    let written = match target {
        Some(target) if exit != Exit::Interrupted => {
            target.write_all(write_jsonl(&in_order(&graph, &best)?).as_bytes())
        }
        _ => Ok(()),
    };
    match args.output.as_deref() {
        // Stdout receives the graph.
        Some("-") => print_note(study.study_text().plain().trim_end()),
        _ => output.print_either(&study.study_object(), study.study_text())?,
    }
    written.map(|()| exit)
}

/// The dependencies between operations. If there are several streams, the operations of each follow one another.
fn free_dependencies(graph: &Graph) -> Dependencies {
    let mut streams = graph.operations().iter().map(|operation| operation.stream);
    let first = streams.next();
    match streams.all(|stream| Some(stream) == first) {
        true => Dependencies::from_tensors(graph),
        false => Dependencies::with_streams(graph),
    }
}

/// One plan of the net, with its figures.
struct Row {
    /// The question that the plan answers.
    name: String,
    /// The suffix of the workload's key; empty for the net itself.
    suffix: String,
    record: Record,
}

struct Study<'a> {
    args: &'a GraphArgs,
    key: String,
    graph: &'a Graph,
    dependencies: Dependencies,
    runner: Runner,
    scratch: &'a TemporaryFolder,
    store: Option<Store>,
    /// Whether the planner uses hand-overs, which decides what a good order is.
    hand_overs: HandOvers,
    /// Rows and plans by problem and planner, because another order can be the same problem.
    known: BTreeMap<(Digest, String), (Record, Option<Plan>)>,
    rows: Vec<Row>,
    bar: Progress,
}

/// The name of the stage that found an order.
const fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Greedy => "greedy",
        Stage::LocalSearch => "local-search",
        Stage::Exact => "exact",
    }
}

/// A trace of the net under one order and rule.
struct Variant {
    /// The suffix of the workload's key; empty for the net itself.
    suffix: String,
    lowered: Lowered,
    /// A lower bound on the memory of any legal order, from a search for orders.
    order_bound: Option<Bytes>,
    /// A plan to start from.
    start: Option<Plan>,
}

impl Variant {
    const fn from_lowered(suffix: String, lowered: Lowered) -> Self {
        Self { suffix, lowered, order_bound: None, start: None }
    }
}

impl Study<'_> {
    /// Makes every plan, and returns the order of the lowest one.
    fn plan_all(&mut self) -> Result<Vec<OpId>, Failure> {
        let own = self.graph.operation_order();
        let plain = Variant::from_lowered(String::new(), lower_graph(self.graph, &own)?);
        for (name, planner) in MEANS {
            self.plan_variant(&plain, name, planner, false)?;
        }
        let planner = self.args.planner.clone();
        let height = self.plan_variant(&plain, "offsets", &planner, true)?;
        let mut start = None;
        for (name, suffix, safety) in [
            ("safe, by ranges", "safe-ranges", Safety::Widened),
            ("safe, by pairs", "safe-pairs", Safety::KeepApart),
        ] {
            if safety == Safety::KeepApart && !planners::honours(&planner).apart {
                print_note(&format!(
                    "{name}: left out, because {planner} cannot keep pairs of buffers apart"
                ));
                continue;
            }
            let lowered = match lower_for_all_orders(self.graph, &own, &self.dependencies, safety) {
                Ok(lowered) => lowered,
                Err(error @ (OrderError::TooManyPairs { .. } | OrderError::TooManyOperations(_))) => {
                    print_note(&format!("{name}: left out: {error}"));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let digest = lowered.instance.digest();
            // A plan for ranges is valid for pairs too, so a planner that honours hints never ends above it.
            let variant =
                Variant { start: start.take(), ..Variant::from_lowered(suffix.to_owned(), lowered) };
            self.plan_variant(&variant, name, &planner, true)?;
            start = self.known.get(&(digest, planner.clone())).and_then(|(_, plan)| plan.clone());
        }
        self.plan_orders(own, height)
    }

    /// Plans in other orders. Returns the order of the lowest plan: the graph's own unless another is lower.
    fn plan_orders(&mut self, own: Vec<OpId>, height: Option<u64>) -> Result<Vec<OpId>, Failure> {
        let mut best = (height.unwrap_or(u64::MAX), own);
        for (stage, found) in self.search_orders() {
            let lowered = lower_graph(self.graph, &found.order)?;
            let suffix = format!("order-{}", stage_name(stage));
            let variant =
                Variant { order_bound: Some(found.bound), ..Variant::from_lowered(suffix, lowered) };
            let (planner, name) = (self.args.planner.clone(), format!("order: {}", stage_name(stage)));
            let height = self.plan_variant(&variant, &name, &planner, false)?;
            if let Some(height) = height.filter(|&height| height < best.0) {
                best = (height, found.order);
            }
        }
        Ok(best.1)
    }

    /// The best order after each stage of the search.
    fn search_orders(&self) -> Vec<(Stage, Reordered)> {
        self.bar.set_message("searching for orders");
        let orders = Orders::new(self.graph, &self.dependencies, self.hand_overs);
        let wall = Some(self.args.limits.time_limit.unwrap_or(SEARCH));
        let budget = Budget { wall, cancel: self.runner.cancel().clone(), ..Budget::default() };
        let mut rng = ChaCha8Rng::seed_from_u64(self.args.limits.seed);
        let mut found = Vec::new();
        let search = BestOrder::default().with_work(self.args.order_work);
        search.run_stages(&orders, &budget, &mut rng, |stage, best| found.push((stage, best.clone())));
        found
    }

    /// Plans one variant and returns the height.
    fn plan_variant(
        &mut self,
        variant: &Variant,
        name: &str,
        planner: &str,
        is_rehearsed: bool,
    ) -> Result<Option<u64>, Failure> {
        if self.runner.cancel().is_cancelled() {
            return Ok(None);
        }
        self.bar.set_message(name.to_owned());
        let key = match variant.suffix.as_str() {
            "" => self.key.clone(),
            suffix => format!("{}/{suffix}", self.key),
        };
        let Lowered { instance, labels, .. } = &variant.lowered;
        let known = (instance.digest(), planner.to_owned());
        let (mut record, plan) = match self.known.get(&known).cloned() {
            Some(found) => found,
            None => {
                let trace = Trace::new(instance.clone(), labels.clone());
                let file = self.scratch.path().join(format!("plan{}.csv", variant.suffix));
                fs::write(&file, write_trace(&trace))?;
                let start = variant.start.as_ref().filter(|_| planners::honours(planner).hint);
                let hints = start.map(|plan| plan.offsets.iter().copied().map(Some).collect::<Hints>());
                let made = self.run_cell(&source_file(&key, file), instance, planner, hints)?;
                self.known.insert(known, made.clone());
                made
            }
        };
        record.workload = key.as_str().into();
        // Other orders can be the same problem, but each question has its own row.
        if !variant.suffix.is_empty() {
            let question = format!("{}/{}", record.cell, variant.suffix);
            record.cell = Digest::of_bytes(question.as_bytes()).to_string();
        }
        record.order_bound = variant.order_bound.map(Bytes::get);
        (record.orders_run, record.orders_failed) =
            plan.as_ref().filter(|_| is_rehearsed).map(|plan| self.rehearse_plan(variant, plan)).unzip();
        self.keep_row(instance, labels, &mut record, plan.as_ref())?;
        if !record.status.is_answer() {
            print_note(&format!("{name}: {planner}: {}: {}", record.status.name(), record.reason));
        }
        let height = record.height.filter(|_| record.status.is_answer());
        self.rows.push(Row { name: name.to_owned(), suffix: variant.suffix.clone(), record });
        self.bar.inc(1);
        Ok(height)
    }

    fn run_cell(
        &self,
        source: &Source,
        instance: &Instance,
        planner: &str,
        hints: Option<Hints>,
    ) -> Result<(Record, Option<Plan>), Failure> {
        let digest = instance.digest();
        let known = hints.as_deref().map(hints::hints_digest);
        let cell = Cell { hints: known, ..Cell::of(source, planner, &self.args.limits) };
        let subject = Subject { source, instance, digest, hints };
        let (judgement, row) = self.runner.run_alone(&subject, &cell)?;
        Ok((row, judgement.plan.map(VerifiedPlan::into_plan)))
    }

    /// Keeps a row with its instance and plan; the lean build keeps rows alone.
    fn keep_row(
        &mut self,
        instance: &Instance,
        labels: &Labels,
        row: &mut Record,
        plan: Option<&Plan>,
    ) -> Result<(), Failure> {
        let Some(store) = &mut self.store else { return Ok(()) };
        #[cfg(feature = "reports")]
        {
            store.put_instance(instance, labels)?;
            row.plan = plan.map(|plan| store.put_plan(plan)).transpose()?.map(|digest| digest.to_string());
        }
        #[cfg(not(feature = "reports"))]
        let _ = (instance, labels, plan);
        Ok(store.append(row)?)
    }

    /// Runs the plan in random legal orders. Returns their number, and the number in which two live buffers overlapped.
    fn rehearse_plan(&self, variant: &Variant, plan: &Plan) -> (u64, u64) {
        let rehearsal = Rehearsal::new(self.graph, &self.dependencies, &variant.lowered, plan);
        let mut rng = ChaCha8Rng::seed_from_u64(self.args.limits.seed);
        let one = std::num::NonZeroUsize::MIN;
        let mut fails = 0;
        for run in 0..self.args.orders {
            if self.runner.cancel().is_cancelled() {
                return (run, fails);
            }
            fails += u64::from(rehearsal.run_once(&mut rng, one).is_err());
        }
        (self.args.orders, fails)
    }

    fn exit_code(&self) -> Exit {
        let any = |test: &dyn Fn(Status) -> bool| self.rows.iter().any(|row| test(row.record.status));
        let is_unsafe = |row: &Row| {
            row.suffix.starts_with("safe-") && row.record.orders_failed.is_some_and(|fails| fails > 0)
        };
        let is_interrupted =
            self.runner.cancel().is_cancelled() || any(&|status| status == Status::Interrupted);
        Exit::first_of([
            (Exit::Interrupted, is_interrupted),
            (Exit::Invalid, any(&Status::is_lie) || self.rows.iter().any(is_unsafe)),
            (Exit::Incomplete, any(&|status| !status.is_answer())),
        ])
    }

    fn study_text(&self) -> Text {
        let mut table =
            Table::new(&["plan", "planner", "load", "without in-place", "height", "status", "plan fails in"]);
        for row in &self.rows {
            let record = &row.record;
            let orders = record.orders_run.zip(record.orders_failed);
            let orders = orders.map(|(run, failed)| format!("{failed} of {run} orders"));
            table.push(vec![
                Shown::text(&row.name),
                Shown::text(&record.planner),
                Shown::Bytes(record.relaxed_load),
                Shown::Bytes(record.load),
                Shown::or_missing(record.height.map(Shown::Bytes)),
                Shown::text(record.status.name()),
                Shown::text(orders.unwrap_or_default()),
            ]);
        }
        let (operations, tensors) = (self.graph.operations().len(), self.graph.tensors().len());
        let head = format!("{}: {operations} operations, {tensors} tensors\n\n", self.key);
        let mut text = Text::from(head) + table + self.order_verdict();
        if let Some(bound) = self.order_bound() {
            let measure =
                if self.hand_overs == HandOvers::Relaxed { "load" } else { "load without in-place" };
            let bound = Shown::Bytes(bound).shown();
            text += format!("No legal order has a {measure} below {bound}.\n");
        }
        text
    }

    /// Whether another order of the operations helps, in words; empty if no search ended.
    fn order_verdict(&self) -> &'static str {
        let height = |row: &Row| row.record.height.filter(|_| row.record.status.is_answer());
        let own = self.rows.iter().find(|row| row.name == "offsets").and_then(height);
        let others = self.rows.iter().filter(|row| row.record.order_bound.is_some()).filter_map(height).min();
        match own.zip(others) {
            Some((own, other)) if other < own => "\nAnother order needs less memory; -o writes it.\n",
            Some(_) => "\nNo other order that was found needs less memory.\n",
            None => "",
        }
    }

    /// The best lower bound on the memory of any legal order that the searches proved.
    fn order_bound(&self) -> Option<u64> {
        self.rows.iter().filter_map(|row| row.record.order_bound).max()
    }

    fn study_object(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let record = &row.record;
            json!({
                "plan": row.name,
                "workload": record.workload,
                "planner": record.planner,
                "buffers": record.buffers,
                "load": record.relaxed_load,
                "load_without_in_place": record.load,
                "height": record.height,
                "bound": record.bound,
                "status": record.status.name(),
                "orders_run": record.orders_run,
                "orders_failed": record.orders_failed,
            })
        });
        json!({
            "version": JSON_VERSION,
            "workload": self.key,
            "operations": self.graph.operations().len(),
            "tensors": self.graph.tensors().len(),
            "hand_overs": self.hand_overs == HandOvers::Relaxed,
            "order_bound": self.order_bound(),
            "plans": rows.collect::<Vec<_>>(),
        })
    }
}
