//! The plans that a load or a bound holds for.

crate::named_enum! {
    /// The plans that a bound holds for.
    pub enum Scope {
        /// Every plan.
        Any = "any",
        /// Plans without hand-overs.
        NoHandOver = "no-hand-over",
    }
}

impl Scope {
    /// Whether the scope includes plans with this number of hand-overs.
    #[must_use]
    pub const fn includes_hand_overs(self, hand_overs: u64) -> bool {
        matches!(self, Self::Any) || hand_overs == 0
    }
}
