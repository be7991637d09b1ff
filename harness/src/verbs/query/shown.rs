//! The form of an answer: a table, comma-separated values or JSON.

use planlab_results::queries::{COLUMNS, Cell, QueryAnswer};
use planlab_results::table::Table;
use serde_json::{Map, Value, json};

use crate::shell::JSON_VERSION;
use crate::shell::exit::{Exit, Failure, Verdict};
use crate::shell::output::Output;
use crate::shell::text::Text;

/// Lists the columns of the tables.
pub(super) fn list_columns(csv: bool, output: Output) -> Verdict {
    let names = ["table", "name", "unit", "meaning"].map(str::to_owned).to_vec();
    let row = |texts: [&str; 4]| texts.map(|text| Cell::Text(text.to_owned())).to_vec();
    let rows = COLUMNS.iter().map(|c| row([c.table, c.name, c.unit, c.meaning])).collect();
    let answer = QueryAnswer { columns: names, rows };
    let value = json!({ "version": JSON_VERSION, "columns": row_objects(&answer) });
    output.print_result(&value, text_of(&answer, csv)?, Exit::Complete)
}

/// Prints an answer.
pub(super) fn show_answer(answer: &QueryAnswer, csv: bool, output: Output) -> Result<(), Failure> {
    if !output.json {
        return output.print_text(text_of(answer, csv)?);
    }
    let (columns, rows) = (&answer.columns, row_objects(answer));
    output.print_value(&json!({ "version": JSON_VERSION, "columns": columns, "rows": rows }))
}

fn row_objects(answer: &QueryAnswer) -> Vec<Value> {
    answer.rows.iter().map(|row| row_object(&answer.columns, row)).collect()
}

fn text_of(answer: &QueryAnswer, csv: bool) -> Result<Text, Failure> {
    if csv {
        return Ok(csv_text(answer)?.into());
    }
    let titles: Vec<&str> = answer.columns.iter().map(String::as_str).collect();
    let mut table = Table::new(&titles);
    for row in &answer.rows {
        table.push_texts(row.iter().map(|cell| text(cell, &short_number)));
    }
    Ok(table.into())
}

fn csv_text(answer: &QueryAnswer) -> Result<String, Failure> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&answer.columns)?;
    for row in &answer.rows {
        writer.write_record(row.iter().map(|cell| text(cell, &ToString::to_string)))?;
    }
    Ok(String::from_utf8_lossy(&writer.into_inner()?).into_owned())
}

/// A number with at most six decimals.
fn short_number(number: &f64) -> String {
    let text = format!("{number:.6}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn text(cell: &Cell, real: &dyn Fn(&f64) -> String) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Bool(value) => value.to_string(),
        Cell::Integer(number) => number.to_string(),
        Cell::Real(number) => real(number),
        Cell::Text(text) => text.clone(),
        Cell::List(values) => values.iter().map(|value| text(value, real)).collect::<Vec<_>>().join(" "),
    }
}

fn row_object(columns: &[String], row: &[Cell]) -> Value {
    Value::Object(columns.iter().cloned().zip(row.iter().map(cell_json)).collect::<Map<_, _>>())
}

/// A cell in JSON, which has no infinite numbers and no integers past 64 bits.
fn cell_json(cell: &Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => json!(value),
        Cell::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
            (Ok(number), _) => json!(number),
            (_, Ok(number)) => json!(number),
            _ => json!(number.to_string()),
        },
        Cell::Real(number) => json!(number),
        Cell::Text(text) => json!(text),
        Cell::List(values) => values.iter().map(cell_json).collect(),
    }
}
