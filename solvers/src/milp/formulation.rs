//! The model: columns and rows in units.

use good_lp::{Constraint, Expression, ProblemVariables, SolverModel, Variable, variable};

use super::Strengthening;
use super::bound::as_float;
use super::rows::Rows;
use crate::pairs::{Below, PairDraft, PlacedBuffer};

/// The model of a part of an instance.
pub(super) struct Formulation {
    /// The value of each column in the plan to start from, if there is one.
    pub(super) start: Option<Vec<f64>>,
    variables: ProblemVariables,
    height: Variable,
    rows: Vec<Constraint>,
}

impl Formulation {
    /// The model whose solutions are the better plans of a draft. Its first column is the height; then come the
    /// offsets, in steps of the places.
    pub(super) fn new(draft: &PairDraft<'_>, switches: Strengthening) -> Self {
        let mut columns = Columns::default();
        let floor = if switches.load { draft.floor } else { 0 };
        let height = columns.add_column(floor, draft.ceiling, switches.whole_height, draft.ceiling);
        let offsets: Vec<Expression> =
            draft.places.iter().map(|place| columns.offset_expression(place)).collect();
        let orders = draft.relations.iter().enumerate().map(|(index, relation)| {
            let forced = if switches.tight_big_m { draft.forced_order(relation) } else { Below::Either };
            let below = if forced == Below::Either { draft.chosen_order(index) } else { forced };
            columns.order_binary(below, draft.is_first_below(relation))
        });
        let orders = orders.collect();
        let rows = Rows { draft, switches, height, offsets, orders }.all_rows();
        let start = switches.start.then_some(columns.start);
        Self { start, variables: columns.variables, height, rows }
    }

    /// The model in a solver's own form.
    pub(super) fn give_to<S: SolverModel>(
        &mut self,
        solver: impl FnOnce(good_lp::variable::UnsolvedProblem) -> S,
    ) -> S {
        let variables = std::mem::take(&mut self.variables);
        let mut model = solver(variables.minimise(self.height));
        for row in self.rows.drain(..) {
            model.add_constraint(row);
        }
        model
    }
}

#[derive(Default)]
struct Columns {
    variables: ProblemVariables,
    start: Vec<f64>,
}

impl Columns {
    fn add_column(&mut self, low: u64, high: u64, is_whole: bool, start: u64) -> Variable {
        self.start.push(as_float(start));
        let column = variable().min(as_float(low)).max(as_float(high));
        self.variables.add(if is_whole { column.integer() } else { column })
    }

    /// The offset of a buffer: a column, or a multiple of one if its alignment is coarser than the unit.
    fn offset_expression(&mut self, place: &PlacedBuffer) -> Expression {
        let PlacedBuffer { low, high, step, start, .. } = *place;
        let column = self.add_column(low.div_ceil(step), high / step, step > 1, start / step);
        as_float(step) * column
    }

    /// The binary that is 0 if the first lies below.
    fn order_binary(&mut self, below: Below, is_first_below: bool) -> Variable {
        let (low, high) = match below {
            Below::First => (0, 0),
            Below::Second => (1, 1),
            Below::Either => (0, 1),
        };
        self.add_column(low, high, true, u64::from(!is_first_below))
    }
}
