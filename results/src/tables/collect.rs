//! Runs queries.

use std::path::Path;

use polars::prelude::*;

use crate::StoreError;
use crate::columns::{Field, Table, caught};
use crate::files::frame::column_names;

/// The rows of a query.
pub(crate) fn collect(query: LazyFrame) -> Result<DataFrame, StoreError> {
    // polars panics on some invalid queries.
    let rows = caught(std::panic::AssertUnwindSafe(|| query.collect()));
    match rows {
        Ok(rows) => rows.map_err(refused),
        Err(panic) => Err(StoreError::Query { reason: panic_text(panic.as_ref()) }),
    }
}

/// The columns of a query.
pub(crate) fn small(query: LazyFrame) -> Result<Table, StoreError> {
    Ok(Table::of_frame(Path::new("results"), collect(query)?))
}

/// The columns of such values.
pub(crate) fn columns_of<T: Field>() -> Vec<Expr> {
    column_names::<T>().into_iter().map(col).collect()
}

/// The rows of a query as values.
pub(crate) fn read<T: Field>(query: LazyFrame) -> Result<Vec<T>, StoreError> {
    T::read(&small(query)?, "")
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
    format!("polars cannot answer this: {text}")
}

/// Converts an error of polars; an error of the store inside it is returned as such.
pub(crate) fn refused(error: PolarsError) -> StoreError {
    match error {
        PolarsError::Context { error, .. } => refused(*error),
        PolarsError::IO { error, msg } => {
            let reason = msg.map_or_else(|| error.to_string(), |msg| msg.to_string());
            let below = std::sync::Arc::try_unwrap(error).ok().and_then(std::io::Error::into_inner);
            let store = below.and_then(|below| below.downcast::<StoreError>().ok());
            store.map_or(StoreError::Query { reason }, |store| *store)
        }
        error => StoreError::Query { reason: error.to_string() },
    }
}
