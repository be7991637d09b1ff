//! Contenders, and the turns in which they play on a device.

mod act;
mod compete;
mod contenders;
mod failure;
mod memory;
mod player;
mod tally;
#[cfg(test)]
mod tests;
mod turn;

pub use compete::{News, compete_on_device};
pub use contenders::{Builder, Contender, Idle, Strategy};
pub use player::Score;
pub use turn::Protocol;
