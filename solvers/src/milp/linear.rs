//! Linear programs of other rooms, with whole numbers or without, for HiGHS.

use good_lp::{Constraint, Expression, ProblemVariables, SolverModel, Variable, variable};

use super::highs::{SolverLimits, run_highs};
use super::search::End;

/// A column of a [`LinearProgram`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column(usize);

/// The least cost of columns within their bounds, subject to rows.
pub(crate) struct LinearProgram {
    definitions: ProblemVariables,
    variables: Vec<Variable>,
    cost: Expression,
    rows: Vec<Constraint>,
}

/// The value of each column.
#[derive(Clone, Debug)]
pub(crate) struct LinearSolution(Vec<f64>);

impl LinearSolution {
    pub(crate) fn value(&self, column: Column) -> f64 {
        self.0[column.0]
    }
}

impl LinearProgram {
    /// No columns and no rows.
    pub(crate) fn new() -> Self {
        Self {
            definitions: ProblemVariables::new(),
            variables: Vec::new(),
            cost: Expression::with_capacity(0),
            rows: Vec::new(),
        }
    }

    /// Adds a column from `least` to `most`.
    pub(crate) fn add_column(&mut self, (least, most): (f64, f64), is_whole: bool, cost: f64) -> Column {
        let definition = variable().min(least).max(most);
        let added = self.definitions.add(if is_whole { definition.integer() } else { definition });
        self.cost.add_mul(cost, added);
        self.variables.push(added);
        Column(self.variables.len() - 1)
    }

    /// Adds the row that a sum is at most a number.
    pub(crate) fn limit_sum(&mut self, terms: &[(Column, f64)], most: f64) {
        let sum = self.sum_terms(terms);
        self.rows.push(sum.leq(most));
    }

    /// Adds the row that a sum is a number.
    pub(crate) fn fix_sum(&mut self, terms: &[(Column, f64)], value: f64) {
        let sum = self.sum_terms(terms);
        self.rows.push(sum.eq(value));
    }

    fn sum_terms(&self, terms: &[(Column, f64)]) -> Expression {
        let mut sum = Expression::with_capacity(terms.len());
        for &(Column(index), factor) in terms {
            sum.add_mul(factor, self.variables[index]);
        }
        sum
    }

    /// How HiGHS ends, and the best solution that it finds. An error says what it refuses.
    pub(crate) fn solve(self, limits: SolverLimits) -> Result<(End, Option<LinearSolution>), String> {
        let mut model = good_lp::solvers::highs::highs(self.definitions.minimise(self.cost));
        for row in self.rows {
            model.add_constraint(row);
        }
        let answer = run_highs(model, None, limits)?;
        Ok((answer.end, answer.columns.map(LinearSolution)))
    }

    /// The numbers of columns and of rows.
    #[cfg(test)]
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.variables.len(), self.rows.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greatest 5 x + 4 y with 6 x + 4 y <= 24 and x + 2 y <= 6.
    fn greatest(is_whole: bool) -> (End, Vec<f64>) {
        let mut program = LinearProgram::new();
        let [x, y] = [5.0, 4.0].map(|gain| program.add_column((0.0, 9.0), is_whole, -gain));
        program.limit_sum(&[(x, 6.0), (y, 4.0)], 24.0);
        program.limit_sum(&[(x, 1.0), (y, 2.0)], 6.0);
        assert_eq!(program.size(), (2, 2));
        let (end, solution) = program.solve(SolverLimits::default()).expect("a model");
        let solution = solution.expect("a solution");
        (end, [x, y].map(|column| (solution.value(column) * 1e6).round() / 1e6).to_vec())
    }

    #[test]
    fn whole_columns_have_another_optimum_than_the_relaxation() {
        assert_eq!(greatest(false), (End::Optimal, vec![3.0, 1.5]));
        assert_eq!(greatest(true), (End::Optimal, vec![4.0, 0.0]));
    }

    #[test]
    fn rows_that_contradict_each_other_are_infeasible() {
        let mut program = LinearProgram::new();
        let x = program.add_column((0.0, 1.0), true, 1.0);
        program.fix_sum(&[(x, 2.0)], 1.0);
        let (end, solution) = program.solve(SolverLimits::default()).expect("a model");
        assert!(end == End::Infeasible && solution.is_none(), "{end:?}");
    }
}
