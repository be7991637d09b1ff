//! A thread's calls in eight bytes each, and what can be seen in them: a period, a round, odd requests, their pace.

mod familiar;
mod history;
mod pace;
mod period;
mod round;
mod stretches;
mod token;

pub(crate) use familiar::Familiar;
pub(crate) use history::History;
pub(crate) use pace::{Look, Pace};
pub(crate) use period::{News, Watch};
pub(crate) use stretches::Stretches;

pub use period::Proof;
pub use round::{Request, Round};
pub use token::{Call, Token};
