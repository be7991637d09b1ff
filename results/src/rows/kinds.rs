//! The kinds of rows that a store keeps.

/// An expression for each kind of rows that a store keeps, with its type under a name.
macro_rules! each_kind {
    ($row:ident => $of:expr) => {
        [
            {
                type $row = $crate::rows::Record;
                $of
            },
            {
                type $row = $crate::rows::ReplayRow;
                $of
            },
            {
                type $row = $crate::rows::ScheduleRow;
                $of
            },
        ]
    };
}
pub(crate) use each_kind;
