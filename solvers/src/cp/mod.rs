//! Constraint programming: the decisions of the MIP, made by Pumpkin, a solver that learns from its conflicts (lazy
//! clause generation).
//!
//! For the height h, and an offset x of each buffer, all of them whole numbers of units:
//!
//! ```text
//! minimise h
//! x_i + w_i <= h                                  every buffer lies in the arena
//! z_ij -> x_i + w_i <= x_j,  not z_ij -> x_j + w_j <= x_i     for every two that are live at one step
//! disjunctive(x_i, w_i for i live in s)           for every section s
//! ```
//!
//! The last line is the view from the side: with the address as time, each buffer is a task of duration w, and a
//! section is a machine that runs one task at a time. Pumpkin finds edges on it: a buffer lies above a set of others
//! because it does not fit among them. Version 0.5 has no constraint that keeps rectangles apart.
//!
//! Before the model, the instance is split as for the MIP: small buffers that always find a place are set aside, parts
//! that share no step are solved one by one, symmetric plans are left out. Each is a switch of [`Switches`].
//!
//! The search works from both ends. It begins at the best greedy plan, whose values the solver prefers from then on. In
//! turn, it looks for plans at the bound, halfway between bound and best plan, and anywhere below the best plan, each
//! for a number of steps that doubles from round to round. The solver keeps what it has learnt. Refuted heights raise
//! the bound ([`Evidence::Cp`](planlab_dsa::Evidence::Cp)), plans are offered as they are found. Only the order of the
//! offsets of a plan is used: buffers are placed again in that order.
//!
//! Heights of more than 2^29 units do not fit the solver's 32 bits. They are divided, and sizes and offsets rounded
//! down. Every plan is a plan of the rounded instance, so bounds hold; the order of a rounded plan is tried as an order
//! of the true one. Then the last few units may stay undecided.
//!
//! In-place permissions are not used. A step of the solver cannot be interrupted. So the last one begins early enough
//! for a step as long as the longest before, and for freeing the model, to fit the time limit.
//!
//! # References
//!
//! 1. M. Flippo, K. Sidorov, I. Marijnissen, J. Smits and E. Demirović, *A multi-stage proof logging framework
//!    to certify the correctness of CP solvers*, CP 2024, doi:10.4230/LIPIcs.CP.2024.11 (Pumpkin).
//! 2. O. Ohrimenko, P. J. Stuckey and M. Codish, *Propagation via lazy clause generation*, Constraints 14,
//!    2009, doi:10.1007/s10601-008-9064-x.
//! 3. P. Vilím, *Filtering algorithms for the unary resource constraint*, Archives of Control Sciences 18,
//!    2008 (edge finding).
//!
//! # Complexity
//!
//! Exponential; the model has two propagators for every two buffers that meet, and at most 200,000 such pairs.
//!
//! # What it reaches
//!
//! Measured on two shared cores of a busy machine, so that times are for comparison only; lives and sizes (1 to 100)
//! drawn uniformly over as many steps as buffers, five instances each, 8 s:
//!
//! | buffers | proved | geometric mean |
//! |---|---|---|
//! | 20 | 5 of 5 | 1 ms |
//! | 40 | 5 of 5 | 5 ms |
//! | 80 | 5 of 5 | 21 ms |
//! | 100 | 4 of 5 | 0.26 s |
//!
//! (A greedy plan that meets the load decides several of them.) The next table has 37 instances, 4 s each, by switch.
//! 24 are those of the corpus whose optimum lies above the load. 10 are random ones, 5 of 60 and 5 of 80 buffers. The
//! last 3 have 80 buffers with sizes in KiB and a quarter of long lives.
//!
//! | | proved of 37 | all together |
//! |---|---|---|
//! | all | 36 | 7.7 s |
//! | without `load` | 36 | 7.8 s |
//! | without `drop_settled` | 36 | 7.7 s |
//! | without `peel` | 37 | 7.7 s |
//! | without `split` | 36 | 6.7 s |
//! | without `symmetry` | 37 | 5.9 s |
//! | without `sections` | 32 | 26.0 s |
//! | without `start` | 36 | 6.7 s |
//! | without `probe` | 35 | 10.9 s |
//! | none | 30 | 36.7 s |
//!
//! Sections and probes matter most; the others are within the noise here. They are for nets, which have many parts and
//! small buffers.
//!
//! Compared with the MIPs: the 24 instances above the load, 4 random ones of 20 buffers and 3 of 40 with sizes in KiB,
//! 3 s each:
//!
//! | planner | proved of 31 | all together |
//! |---|---|---|
//! | `cp/pumpkin` | 31 | 0.4 s |
//! | `mip/highs` | 31 | 2.3 s |
//! | `mip/cbc` | 30 | 16.3 s |
//! | `mip/highs`, the published model | 22 | 31.4 s |
//! | `mip/cbc`, the published model | 22 | 33.3 s |
//!
//! Of the 80 recorded nets of Chainer and PyTorch with up to 1,200 buffers, 74 need no model: the best greedy plan
//! meets the load (for example for Chainer's ResNet-50 inference, which the best fit misses). The others, gap after 8
//! s:
//!
//! | net | buffers | greedy | `cp/pumpkin` | without `peel` | `mip/highs` | `mip/cbc` |
//! |---|---|---|---|---|---|---|
//! | chainer/alexnet/process/b32 | 484 | 0.84 % | 0, proved in 5.6 s | 0.85 % | 0.84 % | 0.84 % |
//! | chainer/alexnet/process/b64 | 484 | 0.35 % | 0.35 % | 0.35 % | 0.35 % | 0.35 % |
//! | torch/vgg16/train/b64 | 196 | 0.15 % | 0, proved in 1.0 s | 0, in 2.5 s | 0.15 % | 0.15 % |
//! | torch-cpu/squeezenet1-0/train/b8 | 649 | 0.13 % | 0.13 % | 0.13 % | 0.13 % | 0.13 % |
//!
//! (torch/resnet50/train/b32 and torch/wide-resnet50-2/train/b64 have more than 200,000 pairs.)

mod guide;
mod model;
mod pumpkin;
mod search;
mod switches;

pub(crate) use guide::Guide;
pub use pumpkin::CpPumpkin;
pub use switches::Switches;
