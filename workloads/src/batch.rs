//! A recorded trace at another batch.
//!
//! Sizes grow in proportion to the batch, but for those of the model: its parameters and their gradients, and the state of
//! its optimizer. Where the file has categories, they say which these are: `parameter`, `weight`, `optimizer`, and the like.
//! A gradient is one of a parameter if a parameter has its size; gradients of activations have that name, too.
//!
//! Of a buffer without such a category it is taken from its life. It keeps its size if it is never freed and
//!
//! - is older than the recording;
//! - or, if no such buffer is in it, is there from the first step, or was made before the first buffer that is freed again
//!   (the model was built in the recording); of these only those that `torch.nn` made, if there are any (the others are the
//!   inputs of the first batch);
//! - or was made in a step of the optimizer.
//!
//! What else keeps its size, such as gradients without a category, counts as growing: at a larger batch the trace is too large rather than too
//! small, at a smaller one the other way round.

use std::num::NonZeroU64;

use planlab_dsa::{Buffer, BufferId, Bytes, Instance, InstanceError, Label, Pause};
use rustc_hash::FxHashSet;

use crate::formats::Trace;
use crate::formats::import::{BEFORE_RECORDING, Framework};

/// What a category says of a buffer's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BufferCategory {
    Parameter,
    Gradient,
    Optimizer,
    /// What grows with the batch.
    Data,
    Nothing,
}

impl BufferCategory {
    /// By the first word: `param:live`, `OPTIMIZER_STATE`, `activation`.
    fn from_category(category: Option<&str>) -> Self {
        let first = category.unwrap_or_default().split([':', ' ', '/']).next().unwrap_or_default();
        let word = first.to_ascii_lowercase().replace('_', "-");
        match word.as_str() {
            "param" | "params" | "parameter" | "parameters" | "weight" | "weights" => Self::Parameter,
            "grad" | "grads" | "gradient" | "gradients" => Self::Gradient,
            "optimizer" | "optimizer-state" | "optstate" | "opttemp" => Self::Optimizer,
            "activation" | "activations" | "autograd-detail" | "bwdtemp" | "input" | "output" | "saved"
            | "temp" | "temporary" | "workspace" => Self::Data,
            _ => Self::Nothing,
        }
    }
}

/// Which buffers of a trace keep their size.
#[derive(Clone, Debug)]
pub struct Scaling<'t> {
    trace: &'t Trace,
    kept: Vec<bool>,
}

impl<'t> Scaling<'t> {
    /// What the lives of a trace say, and the call stacks of its framework.
    #[must_use]
    pub fn from_trace(trace: &'t Trace, framework: &Framework) -> Self {
        let (buffers, labels) = (trace.instance.buffers(), &trace.labels.buffers);
        let horizon = trace.instance.horizon();
        let stays = |index: &usize| buffers[*index].live.end() == horizon;
        let start = |index: usize| buffers[index].live.start();
        let is_older =
            |index: usize| stays(&index) && labels[index].category.as_deref() == Some(BEFORE_RECORDING);
        let has_older = (0..buffers.len()).any(is_older);
        let first = (0..buffers.len()).map(start).min();
        let first_freed = (0..buffers.len()).filter(|index| !stays(index)).map(start).min();
        let is_by =
            |index: usize, package: &str| framework.call_stack(index).any(|frame| frame.contains(package));
        let is_early = |index: usize| {
            let is_before = first_freed.is_some_and(|freed| start(index) < freed);
            stays(&index) && (Some(start(index)) == first || is_before)
        };
        let has_modules = (0..buffers.len()).any(|index| is_early(index) && is_by(index, "torch/nn/"));
        let is_models = |index: usize| match has_older {
            true => is_older(index),
            false => is_early(index) && (!has_modules || is_by(index, "torch/nn/")),
        };
        let is_optimizers = |index: usize| {
            let category = labels[index].category.as_deref().unwrap_or("");
            category.starts_with("Optimizer.step") || is_by(index, "torch/optim/")
        };
        let said: Vec<BufferCategory> =
            labels.iter().map(|label| BufferCategory::from_category(label.category.as_deref())).collect();
        let parameters = buffers.iter().zip(&said).filter(|(_, said)| **said == BufferCategory::Parameter);
        let parameters: FxHashSet<Bytes> = parameters.map(|(buffer, _)| buffer.size).collect();
        let keeps = |index: usize| match said[index] {
            BufferCategory::Parameter | BufferCategory::Optimizer => true,
            BufferCategory::Gradient => parameters.contains(&buffers[index].size),
            BufferCategory::Data => false,
            BufferCategory::Nothing => stays(&index) && (is_models(index) || is_optimizers(index)),
        };
        Self { trace, kept: (0..buffers.len()).map(keeps).collect() }
    }

    /// The number of buffers that keep their size, and their bytes together.
    #[must_use]
    pub fn kept_buffers(&self) -> (usize, u64) {
        let kept = self.trace.instance.buffers().iter().zip(&self.kept).filter(|(_, kept)| **kept);
        kept.fold((0, 0), |(count, bytes), (buffer, _)| (count + 1, bytes + buffer.size.get()))
    }

    /// The instance at a batch of `to`, recorded at one of `from`. Sizes that do not come out even are rounded up. Pins are
    /// left out, and permissions to overwrite what is smaller.
    ///
    /// # Errors
    ///
    /// If sizes are too large together.
    pub fn instance_at(&self, from: NonZeroU64, to: u64) -> Result<Instance, InstanceError> {
        let instance = &self.trace.instance;
        let all = instance.buffers().iter().zip(&self.kept).zip(&self.trace.labels.buffers);
        let grown = |((buffer, &kept), label): ((&Buffer, &bool), &Label)| {
            if kept { buffer.clone() } else { scale_buffer(buffer, label.requested, (from.get(), to)) }
        };
        let buffers: Vec<Buffer> = all.map(grown).collect();
        let size = |id: BufferId| buffers[id.index()].size;
        let permissions = instance.in_place().iter().filter(|pair| size(pair.output) <= size(pair.input));
        let in_place: Vec<_> = permissions.copied().collect();
        Instance::builder()
            .buffers(buffers)
            .in_place(in_place)
            .arenas(instance.arenas().iter().cloned())
            .apart(instance.keep_apart_pairs().iter().copied())
            .build()
    }
}

/// A buffer at another batch; what does not fit 64 bits is as large as they allow.
fn scale_buffer(buffer: &Buffer, requested: Option<Bytes>, (from, to): (u64, u64)) -> Buffer {
    let product = |bytes: u64| u128::from(bytes) * u128::from(to);
    let up = |bytes: u64| u64::try_from(product(bytes).div_ceil(u128::from(from))).unwrap_or(u64::MAX);
    let down = |bytes: u64| u64::try_from(product(bytes) / u128::from(from)).unwrap_or(u64::MAX);
    let size = match requested {
        // Sizes that were rounded when they were read are rounded again.
        Some(asked) => buffer.align.round_up(up(asked.get()).max(1)).unwrap_or(u64::MAX),
        None => up(buffer.size.get()).max(1),
    };
    let pause = |pause: &Pause| Pause {
        window: pause
            .window
            .as_ref()
            .map(|window| Bytes::new(down(window.start.get()))..Bytes::new(up(window.end.get()).min(size))),
        ..pause.clone()
    };
    let pauses: Vec<Pause> = buffer.pauses.iter().map(pause).collect();
    Buffer { size: Bytes::new(size), pin: None, pauses: pauses.into(), ..buffer.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::trace;

    fn sizes(scaling: &Scaling<'_>, from: u64, to: u64) -> Vec<u64> {
        let instance = scaling.instance_at(NonZeroU64::new(from).expect("positive"), to).expect("valid");
        instance.buffers().iter().map(|buffer| buffer.size.get()).collect()
    }

    #[test]
    fn all_grows_but_the_model_and_the_optimizer() {
        let text = "id,lower,upper,size,category\nweights,0,9,100,\nx,1,3,10,\ny,2,9,7,\n\
            momentum,5,9,100,Optimizer.step#SGD.step\nscratch,5,6,3,Optimizer.step#SGD.step\n";
        let trace = trace(text);
        let scaling = Scaling::from_trace(&trace, &Framework::default());
        assert_eq!(scaling.kept_buffers(), (2, 200));
        assert_eq!(sizes(&scaling, 2, 3), [100, 15, 11, 100, 5]);
        assert_eq!(sizes(&scaling, 10, 1), [100, 1, 1, 100, 1]);
    }

    #[test]
    fn categories_say_what_keeps_its_size() {
        let text = "id,lower,upper,size,category\nw,0,9,100,param:live\nm,3,9,100,OPTIMIZER_STATE\ng,2,4,100,grad\n\
            d,2,4,60,gradient\nx,0,9,10,input\na,1,3,20,ACTIVATION\n";
        let trace = trace(text);
        let scaling = Scaling::from_trace(&trace, &Framework::default());
        assert_eq!(sizes(&scaling, 1, 2), [100, 100, 100, 120, 20, 40]);
        assert_eq!(scaling.kept_buffers(), (3, 300));
    }

    #[test]
    fn gradients_without_parameters_are_of_activations() {
        let trace = trace("id,lower,upper,size,category\na,0,2,10,activation\ng,1,3,10,gradient\n");
        assert_eq!(sizes(&Scaling::from_trace(&trace, &Framework::default()), 1, 2), [20, 20]);
    }

    #[test]
    fn what_is_older_than_the_recording_is_the_model() {
        let text = "id,lower,upper,size,category\nw,0,9,100,before-recording\nv,0,4,50,before-recording\n\
            x,1,9,10,\ny,2,3,7,\n";
        let trace = trace(text);
        assert_eq!(sizes(&Scaling::from_trace(&trace, &Framework::default()), 1, 2), [100, 100, 20, 14]);
    }

    #[test]
    fn rounded_sizes_stay_rounded_and_overwriting_stays_possible_where_it_fits() {
        let text = "# alignment: 8\nid,lower,upper,size,may_overwrite\nw,0,9,64,\na,1,3,9,\nb,2,4,16,a\nc,8,9,48,w\n";
        let trace = trace(text);
        assert_eq!(trace.instance.in_place().len(), 2);
        let scaling = Scaling::from_trace(&trace, &Framework::default());
        let instance = scaling.instance_at(NonZeroU64::new(2).expect("2"), 3).expect("valid");
        let sizes: Vec<u64> = instance.buffers().iter().map(|buffer| buffer.size.get()).collect();
        assert_eq!(sizes, [64, 16, 24, 72]);
        // What grew out of its place, and what the kept buffer has no room for, may overwrite no more.
        assert_eq!(instance.in_place().len(), 0);
    }

    #[test]
    fn sizes_that_no_memory_has_are_an_error() {
        let trace = trace("id,lower,upper,size\na,0,2,100\nb,1,3,18446744073709551000\n");
        let scaling = Scaling::from_trace(&trace, &Framework::default());
        assert!(scaling.instance_at(NonZeroU64::MIN, u64::MAX).is_err());
    }
}
