//! Answers queries in SQL.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;

use polars::prelude::*;
use polars::sql::SQLContext;

use super::collect::{collect, panic_text, refused};
use super::frames::Tables;
use super::glossary::COLUMNS;
use super::rows;
use crate::StoreError;
use crate::columns::caught;

/// The largest length of a query in bytes; nobody types more.
const LONGEST: usize = 10_000;

/// Stack for a query in bytes: polars recurses into each of its parts, and the longest query has thousands.
pub const STACK: usize = 1 << 30;

/// Statements that polars would execute on the tables in memory, without any effect on the store.
const CHANGES: [&str; 4] = ["create", "delete", "drop", "truncate"];

/// The result of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryAnswer {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows; each has one value per column.
    pub rows: Vec<Vec<Cell>>,
}

/// One value of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number; may be infinite.
    Real(f64),
    /// A text.
    Text(String),
    /// A list of values.
    List(Vec<Self>),
}

impl Tables {
    /// Answers a query in the SQL of polars: `SELECT planner, avg(gap) FROM rows GROUP BY planner`. The tables are
    /// `rows`, `replays`, `schedules` and `instances`; [`COLUMNS`] lists their columns.
    ///
    /// # Errors
    ///
    /// [`StoreError::Query`] for an invalid query, and errors of the store when its rows are read.
    pub fn query_sql(&self, sql: &str) -> Result<QueryAnswer, StoreError> {
        refuse_sql(sql).map_err(|reason| StoreError::Query { reason })?;
        let answer = || caught(AssertUnwindSafe(|| self.answer_sql(sql)));
        let answered = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("query".to_owned()).stack_size(STACK);
            let thread = thread.spawn_scoped(scope, answer).map_err(|error| error.to_string())?;
            // polars panics on some unknown SQL.
            thread.join().and_then(|answered| answered).map_err(|panic| panic_text(panic.as_ref()))
        });
        let answered = answered.map_err(|reason| StoreError::Query { reason })?;
        answered.map_err(|error| match error {
            StoreError::Query { reason } => StoreError::Query { reason: with_hint(&reason) },
            error => error,
        })
    }

    fn answer_sql(&self, sql: &str) -> Result<QueryAnswer, StoreError> {
        answer_from_frame(&collect(self.plan_sql(sql).map_err(refused)?)?)
    }

    fn plan_sql(&self, sql: &str) -> PolarsResult<LazyFrame> {
        let mut context = SQLContext::new();
        context.register("rows", rows::rows_table(self.rows.clone()));
        context.register("instances", rows::instances_table(self.rows.clone()));
        context.register("replays", self.replays.clone());
        context.register("schedules", self.schedules.clone());
        context.execute(sql)
    }
}

/// Rejects what cannot be a query, with the reason.
fn refuse_sql(sql: &str) -> Result<(), String> {
    if sql.len() > LONGEST {
        return Err(format!("the question has {} bytes; {LONGEST} are the most", sql.len()));
    }
    let word = sql.split_whitespace().next().unwrap_or_default().to_lowercase();
    if CHANGES.contains(&word.as_str()) {
        return Err(format!("`{word}` changes tables; results are asked by SELECT and never changed"));
    }
    Ok(())
}

/// Describes the problem of a query and suggests alternatives, without the internals of polars.
fn with_hint(reason: &str) -> String {
    let insides = ["\n\nResolved plan until failure", "; valid columns:", ":\nInsert("];
    let end = insides.iter().filter_map(|part| reason.find(part)).min().unwrap_or(reason.len());
    let reason = reason[..end].trim();
    let lower = reason.to_lowercase();
    if !["not found", "was not found", "no column named"].iter().any(|part| lower.contains(part)) {
        return reason.to_owned();
    }
    let tables: BTreeSet<&str> = COLUMNS.iter().map(|column| column.table).collect();
    let tables: Vec<&str> = tables.into_iter().collect();
    format!("{reason}; `planlab query --columns` lists the columns of the tables {}", tables.join(", "))
}

fn answer_from_frame(frame: &DataFrame) -> Result<QueryAnswer, StoreError> {
    let columns = frame.get_column_names().into_iter().map(ToString::to_string).collect();
    let values = frame.columns().iter().map(column_cells).collect::<PolarsResult<Vec<Vec<Cell>>>>();
    let mut values: Vec<_> = values.map_err(refused)?.into_iter().map(Vec::into_iter).collect();
    let rows = (0..frame.height()).map(|_| values.iter_mut().filter_map(Iterator::next).collect());
    Ok(QueryAnswer { columns, rows: rows.collect() })
}

fn column_cells(column: &Column) -> PolarsResult<Vec<Cell>> {
    let column = column.as_materialized_series();
    (0..column.len()).map(|at| column.get(at).map(cell_value)).collect()
}

fn cell_value(value: AnyValue<'_>) -> Cell {
    match value {
        AnyValue::Null => Cell::Null,
        AnyValue::Boolean(value) => Cell::Bool(value),
        AnyValue::Float32(value) => Cell::Real(f64::from(value)),
        AnyValue::Float64(value) => Cell::Real(value),
        AnyValue::String(text) => Cell::Text(text.to_owned()),
        AnyValue::StringOwned(text) => Cell::Text(text.to_string()),
        AnyValue::List(values) => Cell::List(values.iter().map(cell_value).collect()),
        value => match value.extract::<i128>().filter(|_| value.is_integer()) {
            Some(number) => Cell::Integer(number),
            None => Cell::Text(value.to_string()),
        },
    }
}
