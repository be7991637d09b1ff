//! Reconstructs the process that contains a recorded `PyTorch` trace, from the trace alone.
//!
//! A trace of the route `torch` is a window: it contains the buffers that live when the window begins, and the requests
//! in it. The peaks that `PyTorch` recorded are those of the whole process, whose cached segments the window does not
//! show. The marks and categories of the trace determine what came before it:
//!
//! 1. Parameters and buffers, in the order of the trace.
//! 2. An output layer that shares its weight with an embedding is first built with its own weight, which is then
//!    dropped. Such a parameter's size is that of the embedding's own gradient and of a gradient that is a sum.
//! 3. A warm-up iteration: a copy of the window, or of its first iteration. It creates the optimizer's state at its
//!    marks `.opt`: what the trace has between gradients, at one mark each, or all of it at the first. It does not free
//!    buffers made before the window, and buffers that it makes but does not free live to the end.
//! 4. The gradients that live when the window begins are those that the warm-up left.
//! 5. The window as recorded.
//!
//! Buffers of other categories before the window are left out; if the window frees one, the trace is refused. No rule
//! has a parameter, and none depends on the recorded peak. Each request and each free has its own step, so the metadata
//! of the process do not mention times, an optimal height or a capacity.
//!
//! # Complexity
//!
//! O(n log n) for n buffers.

use std::collections::{BTreeMap, BTreeSet};

use planlab_dsa::{
    Buffer, BufferId, Bytes, Call, Instance, InstanceError, Label, Labels, LiveRange, Requests,
};

use crate::formats::Trace;
use crate::glob::matches_glob;

/// Only traces of this route have a process.
const ROUTE: &str = "torch/";
/// The suffix of a process's key.
const SUFFIX: &str = "/process";
/// Metadata of a process in which an embedding's weight replaced an output layer's own.
pub const TIED_HEAD_KEY: &str = "process-tied-head";
/// The suffix of the category of a buffer that lives on.
const LIVES_ON: &str = ":live";
/// Metadata of a trace that do not apply to its process.
const NOT_OF_PROCESS: [&str; 5] = ["capacity", "marks", "optimum", "rank-steps", "step-unit"];
/// The most steps per buffer of the trace: its own request and free, those of the warm-up, and those of a weight.
const STEPS: usize = 6;

/// Why a trace does not determine the process that contains it.
#[expect(missing_docs, reason = "the fields are named in the messages")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// It has no mark `window`.
    #[error("its metadata `marks` do not say where the window begins")]
    NoWindow,
    /// The gradients that live when the window begins are not those that the warm-up leaves.
    #[error("{before} gradients live when the window begins, but the warm-up leaves {left}")]
    Gradients { before: usize, left: usize },
    /// The trace frees a buffer that no rule makes.
    #[error("buffer {buffer}: it is freed, but no part of the process has made it")]
    Unmade { buffer: BufferId },
    /// The process has more steps than an instance can have.
    #[error("{buffers} buffers are too many for a process")]
    TooMany { buffers: usize },
    /// The process has more bytes than an instance can have.
    #[error(transparent)]
    Instance(#[from] InstanceError),
}

/// The key of the trace from which the process of a key is reconstructed; `None` for other keys.
///
/// ```
/// use planlab_workloads::process::window_of;
/// assert_eq!(window_of("torch/resnet50/train/b64/process"), Some("torch/resnet50/train/b64"));
/// assert_eq!(window_of("chainer/resnet50/process/b64"), None);
/// ```
#[must_use]
pub fn window_of(key: &str) -> Option<&str> {
    key.strip_suffix(SUFFIX).filter(|window| window.starts_with(ROUTE))
}

/// The key of the process of a recorded workload, if it has one.
#[must_use]
pub fn process_of(key: &str) -> Option<String> {
    (key.starts_with(ROUTE) && !key.ends_with(SUFFIX)).then(|| format!("{key}{SUFFIX}"))
}

/// Whether a pattern selects the workload of a key. A pattern selects processes only if it ends like their keys, so
/// that a pattern for all nets does not select each of them twice.
///
/// ```
/// use planlab_workloads::process::selects;
/// assert!(selects("torch/*", "torch/resnet50/train/b64"));
/// assert!(!selects("torch/*", "torch/resnet50/train/b64/process"));
/// assert!(selects("torch/*/process", "torch/resnet50/train/b64/process"));
/// ```
#[must_use]
pub fn selects(pattern: &str, key: &str) -> bool {
    matches_glob(pattern, key) && (window_of(key).is_none() || pattern.ends_with(SUFFIX))
}

/// The iterations that the marks of a trace distinguish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iterations {
    /// The number of iterations that begin at a mark `itK.in`.
    pub marked: usize,
    /// Whether two of them request different sizes, or in a different order.
    pub differ: bool,
}

/// The iterations of a trace.
#[must_use]
pub fn iterations(trace: &Trace) -> Iterations {
    let begins = begins(&marks(trace));
    let calls = calls(trace);
    let of = |step: u64| begins.iter().rposition(|&begin| begin <= step);
    let mut sizes: Vec<Vec<Bytes>> = vec![Vec::new(); begins.len()];
    for (step, call) in calls {
        if let (Call::Alloc(id), Some(iteration)) = (call, of(step)) {
            sizes[iteration].push(requested(trace, id));
        }
    }
    Iterations { marked: sizes.len(), differ: sizes.windows(2).any(|pair| pair[0] != pair[1]) }
}

/// The metadata `marks`: names and steps.
fn marks(trace: &Trace) -> Vec<(&str, u64)> {
    let marks = trace.labels.meta_value("marks").unwrap_or_default().split_ascii_whitespace();
    let named = marks.filter_map(|mark| mark.rsplit_once('@'));
    named.filter_map(|(name, at)| Some((name, at.parse().ok()?))).collect()
}

/// The steps of the marks at which iterations begin.
fn begins(marks: &[(&str, u64)]) -> Vec<u64> {
    marks.iter().filter(|&&(name, _)| is_begin(name)).map(|&(_, at)| at).collect()
}

/// Whether this is a mark `itK.in`; a mark within an iteration has a further dot.
fn is_begin(name: &str) -> bool {
    let number = name.strip_prefix("it").and_then(|rest| rest.strip_suffix(".in"));
    number.is_some_and(|number| !number.contains('.'))
}

/// The requests and frees of a trace in order, each with its step in the file.
fn calls(trace: &Trace) -> Vec<(u64, Call)> {
    let step = |call: Call| match call {
        Call::Alloc(id) => trace.life(id.index()).0,
        Call::Free(id) => trace.life(id.index()).1,
    };
    Requests::new(&trace.instance).calls_in_order().map(|call| (step(call), call)).collect()
}

/// The requested bytes.
fn requested(trace: &Trace, id: BufferId) -> Bytes {
    trace.labels.buffers[id.index()].requested.unwrap_or(trace.instance.buffer(id).size)
}

const fn buffer_of(call: Call) -> BufferId {
    match call {
        Call::Alloc(id) | Call::Free(id) => id,
    }
}

/// The process of a trace.
///
/// ```
/// use planlab_workloads::process::Process;
/// use planlab_workloads::{Catalog, WorkloadError};
///
/// let window = Catalog::new(None).load("torch/alexnet/train/b32")?;
/// let process = Process::from_pid(&window).and_then(|process| process.trace()).expect("it has marks");
/// assert!(process.instance.len() > window.instance.len());
/// # Ok::<(), WorkloadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Process<'t> {
    trace: &'t Trace,
    /// The calls of the whole trace, each with its step.
    calls: Vec<(u64, Call)>,
    /// The number of calls before the window.
    before: usize,
    /// The end of the warm-up iteration; `None` if it ends with the trace.
    until: Option<u64>,
    /// The marks of its optimizers.
    optimizers: Vec<u64>,
    /// Parameters that an output layer was built with and then lost.
    heads: Vec<BufferId>,
}

impl<'t> Process<'t> {
    /// The process that contains a trace.
    ///
    /// # Errors
    ///
    /// [`ProcessError`] if the trace does not mark where its window begins, or is too large.
    pub fn from_pid(trace: &'t Trace) -> Result<Self, ProcessError> {
        let buffers = trace.instance.len();
        if buffers > u32::MAX as usize / STEPS {
            return Err(ProcessError::TooMany { buffers });
        }
        let marks = marks(trace);
        let window = marks.iter().find(|(name, _)| *name == "window").map(|&(_, at)| at);
        let window = window.ok_or(ProcessError::NoWindow)?;
        let until = begins(&marks).get(1).copied();
        let calls = calls(trace);
        let before = calls.partition_point(|&(step, _)| step < window);
        let is_early = |at: u64| until.is_none_or(|until| at < until);
        let optimizers = marks.iter().filter(|&&(name, at)| name.ends_with(".opt") && is_early(at));
        let optimizers = optimizers.map(|&(_, at)| at).collect();
        let mut process = Self { trace, calls, before, until, optimizers, heads: Vec::new() };
        process.heads = process.tied();
        Ok(process)
    }

    /// Disables rule 2. Default: enabled.
    #[must_use]
    pub fn without_tied_head(mut self) -> Self {
        self.heads.clear();
        self
    }

    /// Whether rule 2 applies.
    #[must_use]
    pub fn has_tied_head(&self) -> bool {
        !self.heads.is_empty()
    }

    /// The process as a trace. Its buffers have the labels of their originals. Buffers alive at the trace's end live
    /// on, and only these have `:live` in their category. Metadata `marks` give the start of the warm-up and the
    /// window; `process-tied-head: true` is set if rule 2 applied.
    ///
    /// # Errors
    ///
    /// [`ProcessError`] if the warm-up leaves other gradients than the window has at its beginning, or if the trace frees a
    /// buffer that no rule makes.
    pub fn trace(&self) -> Result<Trace, ProcessError> {
        let mut script = Script::new(self.trace);
        let mut kept = self.early().filter(|&call| matches!(self.kind(call), "param" | "buffer"));
        kept.try_for_each(|call| script.play(call, RECORDED))?;
        self.heads.iter().for_each(|&head| script.drop_at_once(head));
        let warm_up = script.step;
        self.warm_up(&mut script)?;
        script.hand_over(&self.gradients())?;
        let window = script.step;
        self.calls[self.before..].iter().try_for_each(|&(_, call)| script.play(call, RECORDED))?;
        script.finish(self.metadata(warm_up, window))
    }

    fn label(&self, id: BufferId) -> &'t Label {
        &self.trace.labels.buffers[id.index()]
    }

    fn category(&self, id: BufferId) -> &'t str {
        self.label(id).category.as_deref().unwrap_or_default()
    }

    /// The category of a call's buffer, without the suffix of those that live on.
    fn kind(&self, call: Call) -> &'t str {
        let category = self.category(buffer_of(call));
        category.strip_suffix(LIVES_ON).unwrap_or(category)
    }

    /// The calls before the window.
    fn early(&self) -> impl Iterator<Item = Call> + '_ {
        self.calls[..self.before].iter().map(|&(_, call)| call)
    }

    /// The window's calls in the warm-up iteration, with the optimizers' state at their marks.
    fn warm_up(&self, script: &mut Script<'_>) -> Result<(), ProcessError> {
        let early: BTreeSet<BufferId> = self.made_early().collect();
        let mut states = self.states().into_iter().peekable();
        for &(step, call) in &self.calls[self.before..] {
            if self.until.is_some_and(|until| step >= until) {
                break;
            }
            while let Some((_, state)) = states.next_if(|&(at, _)| at <= step) {
                script.play(state, RECORDED)?;
            }
            let is_of_early = matches!(call, Call::Free(id) if early.contains(&id));
            if !is_of_early {
                script.play(call, WARM_UP)?;
            }
        }
        states.try_for_each(|(_, state)| script.play(state, RECORDED))
    }

    /// The calls for the optimizers' state, each with its step.
    fn states(&self) -> Vec<(u64, Call)> {
        // Gradients separate the states of one mark from those of the next.
        let counts = |&call: &Call| matches!(self.kind(call), "optstate" | "grad");
        let calls: Vec<Call> = self.early().filter(counts).collect();
        let alike = calls.chunk_by(|&a, &b| self.kind(a) == self.kind(b));
        let runs: Vec<&[Call]> = alike.filter(|run| self.kind(run[0]) == "optstate").collect();
        let marks = &self.optimizers;
        let first = marks.first().copied().unwrap_or(u64::MAX);
        let at = |run: usize| if marks.len() == runs.len() { marks[run] } else { first };
        let mut states = Vec::new();
        for (run, calls) in runs.iter().enumerate() {
            states.extend(calls.iter().map(|&call| (at(run), call)));
        }
        states
    }

    /// The buffers made before the window, in order.
    fn made_early(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.early().filter_map(|call| match call {
            Call::Alloc(id) => Some(id),
            Call::Free(_) => None,
        })
    }

    /// The gradients that live when the window begins, and those that live at its end, each in order.
    fn gradients(&self) -> (Vec<BufferId>, Vec<BufferId>) {
        let late = self.calls[self.before..].iter().filter_map(|&(_, call)| match call {
            Call::Alloc(id) if self.category(id) == "grad:live" => Some(id),
            _ => None,
        });
        let early = self.made_early().filter(|&id| self.category(id) == "grad");
        (early.collect(), late.collect())
    }

    /// The parameter of each size that is a parameter's, that of an embedding's own gradient, and that of a gradient
    /// which is a sum.
    fn tied(&self) -> Vec<BufferId> {
        let (mut embeddings, mut sums) = (BTreeSet::new(), BTreeSet::new());
        for id in self.trace.instance.ids() {
            let op = self.label(id).op.as_deref().unwrap_or_default();
            let is_gradient = self.category(id).starts_with("grad");
            if !is_gradient && op.contains("embedding_dense_backward") {
                embeddings.insert(requested(self.trace, id));
            }
            if is_gradient && op.contains("add.Tensor") {
                sums.insert(requested(self.trace, id));
            }
        }
        let mut heads = BTreeMap::new();
        for call in self.early() {
            let size = requested(self.trace, buffer_of(call));
            if self.kind(call) == "param" && embeddings.contains(&size) && sums.contains(&size) {
                heads.entry(size).or_insert(buffer_of(call));
            }
        }
        heads.into_values().collect()
    }

    /// The metadata of the trace that apply to the process, with its own marks.
    fn metadata(&self, warm_up: u32, window: u32) -> Vec<(String, String)> {
        let mut metadata = self.trace.labels.metadata.clone();
        metadata.retain(|(key, _)| !NOT_OF_PROCESS.contains(&key.as_str()));
        metadata.push(("marks".to_owned(), format!("warm-up@{warm_up} window@{window}")));
        if self.has_tied_head() {
            metadata.push((TIED_HEAD_KEY.to_owned(), "true".to_owned()));
        }
        metadata
    }
}

/// The prefix of a buffer's name by its origin: the buffer of the trace itself.
const RECORDED: &str = "";
/// The weight of an output layer, which is dropped.
const HEAD: &str = "head/";
/// The same buffer in the iteration before.
const WARM_UP: &str = "warm-up/";

/// A buffer of the process.
struct BuiltProcess {
    source: BufferId,
    prefix: &'static str,
    start: u32,
    /// `None` if it lives on.
    end: Option<u32>,
}

/// The calls of the process so far.
struct Script<'t> {
    trace: &'t Trace,
    made: Vec<BuiltProcess>,
    /// For each buffer of the trace, the buffer of the process that holds its memory.
    held: Vec<Option<usize>>,
    /// The step of the next call.
    step: u32,
}

impl<'t> Script<'t> {
    fn new(trace: &'t Trace) -> Self {
        Self { trace, made: Vec::new(), held: vec![None; trace.instance.len()], step: 0 }
    }

    fn play(&mut self, call: Call, prefix: &'static str) -> Result<(), ProcessError> {
        match call {
            Call::Alloc(id) => self.held[id.index()] = Some(self.make(id, prefix, None)),
            Call::Free(id) => {
                let made = self.held[id.index()].take().ok_or(ProcessError::Unmade { buffer: id })?;
                self.made[made].end = Some(self.step);
            }
        }
        self.step += 1;
        Ok(())
    }

    fn make(&mut self, source: BufferId, prefix: &'static str, end: Option<u32>) -> usize {
        self.made.push(BuiltProcess { source, prefix, start: self.step, end });
        self.made.len() - 1
    }

    /// Requests a weight like a parameter's and frees it at the next step.
    fn drop_at_once(&mut self, parameter: BufferId) {
        self.make(parameter, HEAD, Some(self.step + 1));
        self.step += 2;
    }

    /// The window's live gradients take over those that the warm-up left.
    fn hand_over(&mut self, (before, left): &(Vec<BufferId>, Vec<BufferId>)) -> Result<(), ProcessError> {
        if before.is_empty() {
            return Ok(());
        }
        let left: Vec<usize> = left.iter().filter_map(|id| self.held[id.index()].take()).collect();
        if before.len() != left.len() {
            return Err(ProcessError::Gradients { before: before.len(), left: left.len() });
        }
        for (id, made) in before.iter().zip(left) {
            self.held[id.index()] = Some(made);
        }
        Ok(())
    }

    fn finish(self, metadata: Vec<(String, String)>) -> Result<Trace, ProcessError> {
        let buffers: Vec<Buffer> = self.made.iter().map(|made| self.buffer(made)).collect();
        let labels = self.made.iter().map(|made| self.label(made)).collect();
        let instance = Instance::from_buffers(buffers)?;
        Ok(Trace::new(instance, Labels { buffers: labels, metadata }))
    }

    fn buffer(&self, made: &BuiltProcess) -> Buffer {
        let source = self.trace.instance.buffer(made.source);
        let live = LiveRange::new(made.start, made.end.unwrap_or(self.step));
        Buffer::new(source.size, live.expect("its free is a later step")).with_align(source.align)
    }

    fn label(&self, made: &BuiltProcess) -> Label {
        let source = &self.trace.labels.buffers[made.source.index()];
        let category = source.category.as_deref().map(|category| match made.end {
            Some(_) => category.strip_suffix(LIVES_ON).unwrap_or(category).to_owned(),
            None => category.to_owned(),
        });
        Label {
            name: format!("{}{}", made.prefix, source.name),
            category,
            op: source.op.clone(),
            requested: source.requested,
            ..Label::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::trace;

    /// A network of two parameters whose gradients and state exist when the window begins.
    const KEPT: &str = "\
        # marks: window@6 it0.D.in@6 it0.D.opt@9 it0.G.opt@11 it0.end@12\n\
        id,lower,upper,size,category,op\n\
        a,0,13,100,param:live,i\n\
        b,1,13,200,param:live,i\n\
        ga,2,7,100,grad,b\n\
        sa,3,13,110,optstate:live,o\n\
        gb,4,8,200,grad,b\n\
        sb,5,13,210,optstate:live,o\n\
        x,6,10,50,activation,f\n\
        na,8,13,100,grad:live,b\n\
        nb,10,13,200,grad:live,b\n";

    fn process(text: &str) -> Trace {
        let trace = trace(text);
        Process::from_pid(&trace)
            .and_then(|process| process.trace())
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// `+name` for each request, `-name` for each free, in order.
    fn script(trace: &Trace) -> String {
        let name = |id: BufferId| trace.labels.buffers[id.index()].name.as_str();
        let requests = Requests::new(&trace.instance);
        let words = requests.calls_in_order().map(|call| match call {
            Call::Alloc(id) => format!("+{}", name(id)),
            Call::Free(id) => format!("-{}", name(id)),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn gradients_of_the_warm_up_are_those_that_the_window_frees() {
        let process = process(KEPT);
        let warm_up = "+warm-up/x +warm-up/na +sa -warm-up/x +warm-up/nb +sb";
        let window = "+x -warm-up/na -warm-up/nb +na -x +nb";
        assert_eq!(script(&process), format!("+a +b {warm_up} {window}"));
        assert_eq!(process.labels.meta_value("marks"), Some("warm-up@2 window@8"));
        assert_eq!(process.labels.meta_value(TIED_HEAD_KEY), None);
        let category = |name: &str| {
            let label = process.labels.buffers.iter().find(|label| label.name == name);
            label.and_then(|label| label.category.clone()).unwrap_or_default()
        };
        assert_eq!(category("warm-up/na"), "grad");
        assert_eq!(category("na"), "grad:live");
    }

    #[test]
    fn state_is_made_at_the_first_mark_where_there_are_more_marks_than_runs() {
        let once = KEPT.replace("sa,3,13,110,optstate:live", "sa,3,13,110,buffer:live");
        let script = script(&process(&once));
        assert!(script.starts_with("+a +b +sa +warm-up/x +warm-up/na +sb -warm-up/x"), "{script}");
    }

    #[test]
    fn a_weight_that_an_embedding_replaces_is_made_and_dropped_first() {
        let tied = "\
            # alignment: 512\n\
            # marks: window@2 it0.in@2 it0.opt@5\n\
            id,lower,upper,size,category,op\n\
            w,0,6,1000,param:live,i\n\
            v,1,6,2000,param:live,i\n\
            e,2,4,1000,temporary,b:embedding_dense_backward\n\
            g,3,5,1000,grad,b:add.Tensor\n";
        let with_head = process(tied);
        assert!(script(&with_head).starts_with("+w +v +head/w -head/w +warm-up/e"));
        assert_eq!(with_head.labels.meta_value(TIED_HEAD_KEY), Some("true"));
        let head = &with_head.labels.buffers[2];
        assert_eq!((head.requested, head.category.as_deref()), (Some(Bytes::new(1000)), Some("param")));
        let trace = trace(tied);
        let without =
            Process::from_pid(&trace).expect("marked").without_tied_head().trace().expect("the same");
        assert!(!script(&without).contains("head") && without.labels.meta_value(TIED_HEAD_KEY).is_none());
    }

    #[test]
    fn the_first_of_several_iterations_is_the_warm_up() {
        let two = "\
            # marks: window@1 it0.in@1 it1.in@3\n\
            id,lower,upper,size,category,op\n\
            w,0,6,10,param:live,i\n\
            x,1,2,20,activation,f\n\
            y,3,5,30,activation,f\n";
        assert_eq!(script(&process(two)), "+w +warm-up/x -warm-up/x +x -x +y -y");
        assert_eq!(iterations(&trace(two)), Iterations { marked: 2, differ: true });
        let alike = two.replace("5,30", "5,20");
        assert_eq!(iterations(&trace(&alike)), Iterations { marked: 2, differ: false });
        assert_eq!(iterations(&trace(KEPT)), Iterations::default());
    }

    #[test]
    fn what_the_window_frees_of_what_came_before_lives_through_the_warm_up() {
        let freed = "\
            # marks: window@2 it0.in@2 it0.end@6\n\
            id,lower,upper,size,category,op\n\
            w,0,6,10,param:live,i\n\
            p,1,4,30,param,i\n\
            x,2,3,20,activation,f\n\
            y,4,5,40,activation,f\n";
        let (warm_up, window) = ("+warm-up/x -warm-up/x +warm-up/y -warm-up/y", "+x -x -p +y -y");
        assert_eq!(script(&process(freed)), format!("+w +p {warm_up} {window}"));
        let buffer = freed.replace("30,param,", "30,buffer,");
        assert_eq!(script(&process(&buffer)), format!("+w +p {warm_up} {window}"));
        let state = freed.replace("30,param,", "30,optstate,");
        assert_eq!(script(&process(&state)), format!("+w {warm_up} +p {window}"));
    }

    #[test]
    fn steps_of_a_process_are_no_times() {
        let head = "# model: m\n# step-unit: ns\n# rank-steps: yes\n# optimum: 9\n# capacity: 9\n";
        let timed = format!("{head}{KEPT}");
        assert_eq!(trace(&timed).step_nanoseconds(), Some(1));
        let of_timed = process(&timed);
        assert_eq!(script(&of_timed), script(&process(KEPT)));
        assert_eq!((of_timed.step_nanoseconds(), of_timed.known_optimum()), (None, None));
        for key in ["rank-steps", "step-unit", "optimum", "capacity"] {
            assert!(trace(&timed).labels.meta_value(key).is_some(), "{key}");
            assert_eq!(of_timed.labels.meta_value(key), None, "{key}");
        }
        assert_eq!(of_timed.labels.meta_value("model"), Some("m"));
        assert_eq!(of_timed.labels.meta_value("marks"), Some("warm-up@2 window@8"));
    }

    #[test]
    fn a_trace_that_does_not_say_enough_is_refused() {
        let refused = |text: &str| {
            let trace = trace(text);
            let process = Process::from_pid(&trace).and_then(|process| process.trace());
            process.expect_err("too little is known").to_string()
        };
        assert!(refused(&KEPT.replace("window@6 ", "")).contains("where the window begins"));
        let unmade = format!("{KEPT}o,5,9,30,other,i\n");
        assert!(refused(&unmade).contains("no part of the process"));
        let left = refused(&KEPT.replace("nb,10,13,200,grad:live", "nb,10,13,200,activation:live"));
        assert_eq!(left, "2 gradients live when the window begins, but the warm-up leaves 1");
    }

    #[test]
    fn keys_of_processes_are_those_of_windows_with_a_word_more() {
        for key in ["torch/resnet50/train/b64", "torch/googlenet/train/b64/ws8m"] {
            let process = process_of(key).expect("recorded by PyTorch");
            assert_eq!(window_of(&process), Some(key));
            assert_eq!(process_of(&process), None);
        }
        for key in ["torch-cpu/resnet50/infer/b1", "chainer/alexnet/train/b32", "onnx/resnet50/infer/b1"] {
            assert_eq!(process_of(key), None, "{key}");
        }
    }
}
