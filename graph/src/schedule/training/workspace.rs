//! A limit on the workspace of convolutions: which algorithm each can afford, and the effect on times and memory.
//!
//! A convolution whose output has Y bytes may take kappa * Y bytes of workspace. It uses the fastest algorithm within
//! that limit. X is the size of its input in bytes, k the extents of its kernel:
//!
//! | algorithm | for | time | workspace in bytes |
//! |---|---|---|---|
//! | Winograd, non-fused | 3 x 3 with stride 1 | 0.7 | 4 (X + Y) |
//! | FFT | 5 x 5 and larger | 0.8 | 8 (X + Y) |
//! | implicit GEMM with indices computed before | all | 1 | 4 bytes for each element of the kernel at each position |
//! | implicit GEMM | all | 1.25 | 0 |
//!
//! **The factors are invented.** They rank the algorithms as libraries do, but nobody measured them. The machine's name
//! marks every result that is computed from them.
//!
//! # References
//!
//! 1. A Chinese patent on training with checkpoints and a free list (Zhejiang), its claims on the workspace: kappa is 20,
//!    preferably 0.05.
//! 2. cuDNN, `cudnnGetConvolutionForwardAlgorithm_v7`: algorithms by their time, each with its workspace.
//!
//! # Complexity
//!
//! O(n) for n functions.
//!
//! # Deviations from the claims
//!
//! - The claims concern the forward pass. Here the backward pass of a convolution has the same factor.
//! - All convolutions share one workspace, the largest, which is reserved throughout.

use planlab_dsa::Bytes;

use super::parts::{FunctionId, FunctionKind, Kernel};
use super::problem::SchedulingProblem;

/// Bytes per index.
const INDEX: u64 = 4;

/// An algorithm for convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvolutionAlgorithm {
    /// Winograd's minimal filtering, with transforms as separate kernels.
    Winograd,
    /// A product of Fourier transforms.
    Fft,
    /// A matrix product with precomputed indices.
    PrecomputedGemm,
    /// A matrix product.
    ImplicitGemm,
}

/// The choice for a convolution under a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvolutionChoice {
    /// The convolution.
    pub function: FunctionId,
    /// The algorithm.
    pub algorithm: ConvolutionAlgorithm,
    /// The workspace of the algorithm.
    pub workspace: Bytes,
}

/// A limit that cannot be applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceLimitError {
    /// A factor that is negative, infinite or not a number.
    #[error("a workspace limit of {0} times the output")]
    BadFactor(f64),
    /// A convolution with an unknown kernel.
    #[error("the kernel of convolution `{0}` is not known")]
    NoKernel(String),
}

impl ConvolutionAlgorithm {
    /// All algorithms, fastest first.
    pub const ALL: [Self; 4] = [Self::Winograd, Self::Fft, Self::PrecomputedGemm, Self::ImplicitGemm];

    /// The algorithm's time divided by that of [`Self::PrecomputedGemm`]: an invented factor.
    #[must_use]
    pub const fn time_factor(self) -> f64 {
        match self {
            Self::Winograd => 0.7,
            Self::Fft => 0.8,
            Self::PrecomputedGemm => 1.0,
            Self::ImplicitGemm => 1.25,
        }
    }

    /// The workspace in bytes for a kernel, if input and output together have `maps` bytes; `None` if the algorithm
    /// does not support the kernel. A figure of the model, like the time factors.
    #[must_use]
    pub fn workspace_bytes(self, kernel: &Kernel, maps: Bytes) -> Option<Bytes> {
        let maps = maps.get();
        let bytes = match self {
            Self::Winograd => {
                (kernel.extents == [3, 3] && kernel.strides == [1, 1]).then(|| maps.saturating_mul(4))?
            }
            Self::Fft => kernel.extents.iter().all(|&extent| extent >= 5).then(|| maps.saturating_mul(8))?,
            Self::PrecomputedGemm => kernel
                .extents
                .iter()
                .fold(INDEX, |bytes, &extent| bytes.saturating_mul(extent))
                .saturating_mul(kernel.positions),
            Self::ImplicitGemm => 0,
        };
        Some(Bytes::new(bytes))
    }
}

impl SchedulingProblem {
    /// The choice of each convolution with a workspace of at most `factor` times its output, in the order of the
    /// functions.
    ///
    /// # Errors
    ///
    /// [`WorkspaceLimitError`] for an invalid factor, and for a convolution without a [kernel](Kernel).
    pub fn convolution_algorithms(&self, factor: f64) -> Result<Vec<ConvolutionChoice>, WorkspaceLimitError> {
        if !factor.is_finite() || factor < 0.0 {
            return Err(WorkspaceLimitError::BadFactor(factor));
        }
        let is_convolution = |id: &FunctionId| self.net.function(*id).kind == FunctionKind::Convolution;
        self.net.function_ids().filter(is_convolution).map(|id| self.choose_algorithm(id, factor)).collect()
    }

    fn choose_algorithm(
        &self,
        id: FunctionId,
        factor: f64,
    ) -> Result<ConvolutionChoice, WorkspaceLimitError> {
        let function = self.net.function(id);
        let no_kernel = || WorkspaceLimitError::NoKernel(function.name.clone());
        let kernel = self.net.convolution_kernel(id).ok_or_else(no_kernel)?;
        let size = |map| self.net.map(map).bytes.get();
        let output = size(function.output);
        let maps = function.inputs.iter().fold(output, |sum, &map| sum.saturating_add(size(map)));
        let limit = factor * output as f64;
        let affordable = |algorithm: ConvolutionAlgorithm| {
            let workspace = algorithm.workspace_bytes(kernel, Bytes::new(maps))?;
            let choice = ConvolutionChoice { function: id, algorithm, workspace };
            (workspace.get() as f64 <= limit).then_some(choice)
        };
        let fastest = ConvolutionAlgorithm::ALL.into_iter().find_map(affordable);
        Ok(fastest.expect("implicit GEMM takes no workspace"))
    }

    /// Limits the workspace of each convolution to `factor` times its output. This changes the times of convolutions,
    /// the workspace of the machine, and the machine's name. The current times count as those of
    /// [`ConvolutionAlgorithm::PrecomputedGemm`].
    pub fn with_workspace_limit(&self, factor: f64) -> Result<Self, WorkspaceLimitError> {
        let choices = self.convolution_algorithms(factor)?;
        let mut limited = self.clone();
        limited.machine.workspace =
            choices.iter().map(|choice| choice.workspace).max().unwrap_or(Bytes::ZERO);
        limited.machine.name = format!("{}, workspace x{factor} (invented factors)", self.machine.name);
        for choice in choices {
            limited.times.scale_function(choice.function, choice.algorithm.time_factor());
        }
        Ok(limited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;
    use crate::schedule::training::shortcut_net;

    fn kernel(extents: &[u64], stride: u64, positions: u64) -> Kernel {
        Kernel { extents: extents.to_vec(), strides: vec![stride; extents.len()], positions }
    }

    /// Convolutions 0 (64 bytes to 256) and 2 (256 bytes to 256).
    fn problem(first: Kernel, second: Kernel) -> SchedulingProblem {
        let [conv, conv2] = [0, 2].map(FunctionId::from_index);
        let net = shortcut_net().with_kernels([(conv, first), (conv2, second)]).expect("two kernels");
        SchedulingProblem::new(net, Machine::built_in("x86-pcie3").expect("built in"))
    }

    #[test]
    fn an_algorithm_has_its_kernels_and_its_workspace() {
        let bytes = |kernel: &Kernel| {
            ConvolutionAlgorithm::ALL
                .map(|algorithm| algorithm.workspace_bytes(kernel, Bytes::new(100)).map(Bytes::get))
        };
        assert_eq!(bytes(&kernel(&[3, 3], 1, 7)), [Some(400), None, Some(252), Some(0)]);
        assert_eq!(bytes(&kernel(&[3, 3], 2, 7)), [None, None, Some(252), Some(0)]);
        assert_eq!(bytes(&kernel(&[11, 11], 4, 1)), [None, Some(800), Some(484), Some(0)]);
        assert_eq!(bytes(&kernel(&[1, 7], 1, 1)), [None, None, Some(28), Some(0)]);
        assert_eq!(bytes(&kernel(&[3, 3, 3], 1, 1)), [None, None, Some(108), Some(0)]);
        assert_eq!(bytes(&kernel(&[u64::MAX, 9], 1, 2)), [None, Some(800), Some(u64::MAX), Some(0)]);
    }

    #[test]
    fn the_fastest_that_stays_within_the_limit_is_chosen() {
        use ConvolutionAlgorithm::{Fft, ImplicitGemm, PrecomputedGemm, Winograd};
        let problem = problem(kernel(&[3, 3], 1, 4), kernel(&[5, 5], 1, 1));
        let chosen = |factor| {
            let choices = problem.convolution_algorithms(factor).expect("a limit");
            choices.iter().map(|choice| (choice.algorithm, choice.workspace.get())).collect::<Vec<_>>()
        };
        // Limits of 5120 bytes; Winograd takes 4 * 320 of them and FFT 8 * 512.
        assert_eq!(chosen(20.0), [(Winograd, 1280), (Fft, 4096)]);
        // 1280 is exactly five times the output.
        assert_eq!(chosen(5.0), [(Winograd, 1280), (PrecomputedGemm, 100)]);
        assert_eq!(chosen(4.9), [(PrecomputedGemm, 144), (PrecomputedGemm, 100)]);
        assert_eq!(chosen(0.5), [(ImplicitGemm, 0), (PrecomputedGemm, 100)]);
        assert_eq!(chosen(0.0), [(ImplicitGemm, 0), (ImplicitGemm, 0)]);
    }

    #[test]
    fn a_limit_changes_times_workspace_and_name() {
        let problem = problem(kernel(&[3, 3], 1, 4), kernel(&[5, 5], 1, 1));
        let limited = problem.with_workspace_limit(5.0).expect("a limit");
        assert_eq!(limited.machine.workspace.get(), 1280);
        assert_eq!(limited.base().get() + 8_000_000, problem.base().get() + 1280);
        assert_eq!(limited.machine.name, "x86-pcie3, workspace x5 (invented factors)");
        let factors = |after: &[f64], before: &[f64]| {
            after.iter().zip(before).map(|(after, before)| after / before).collect::<Vec<_>>()
        };
        let expected = [0.7, 1.0, 1.0, 1.0, 1.0];
        let forward = factors(limited.times.forward(), problem.times.forward());
        let is_near = |(ours, wanted): (&f64, f64)| (ours - wanted).abs() < 1e-12;
        assert!(forward.iter().zip(expected).all(is_near), "{forward:?}");
        // The backward pass of the sum takes no time.
        assert_eq!(limited.times.backward()[0], problem.times.backward()[0] * 0.7);
        assert_eq!(limited.times.backward()[1..], problem.times.backward()[1..]);
        assert_eq!(limited.times.accumulate_times(), problem.times.accumulate_times());
    }

    #[test]
    fn what_is_no_limit_and_no_kernel_is_refused() {
        let machine = Machine::built_in("x86-pcie3").expect("built in");
        let unknown = SchedulingProblem::new(shortcut_net(), machine);
        let refused = unknown.with_workspace_limit(0.05).expect_err("no kernel");
        assert_eq!(refused.to_string(), "the kernel of convolution `conv` is not known");
        for factor in [-1.0, f64::NAN, f64::INFINITY] {
            let refused = unknown.with_workspace_limit(factor).expect_err("no limit");
            assert!(matches!(refused, WorkspaceLimitError::BadFactor(_)), "{refused}");
        }
        let bad = |id, kernel| {
            let kernels = [(FunctionId::from_index(id), kernel)];
            shortcut_net().with_kernels(kernels).expect_err("refused").to_string()
        };
        assert!(bad(1, kernel(&[3, 3], 1, 4)).starts_with("function `relu` cannot have the kernel"));
        assert!(bad(0, kernel(&[], 1, 4)).starts_with("function `conv` cannot have the kernel"));
        assert!(bad(0, kernel(&[3, 0], 1, 4)).contains("[3, 0]"));
        assert!(bad(0, Kernel { strides: vec![1], ..kernel(&[3, 3], 1, 4) }).contains("strides: [1]"));
    }
}
