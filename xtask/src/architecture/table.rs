//! The table of crates as ARCHITECTURE.md writes it, so that document and check cannot disagree.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};

const HEADING: &str = "## Crates";

/// Who may know whom, from the top of the table to its bottom.
#[derive(Debug)]
pub(crate) struct Table(Vec<Row>);

#[derive(Debug)]
struct Row {
    name: String,
    may_know: BTreeSet<String>,
}

impl Table {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|row| row.name == name)
    }

    pub(crate) fn may_know(&self, name: &str) -> Option<&BTreeSet<String>> {
        self.0
            .iter()
            .find(|row| row.name == name)
            .map(|row| &row.may_know)
    }
}

/// Reads the table below `## Crates`: `crate | room | may know`.
///
/// The crate's name stands in backticks. The last column is `nothing`, `everything below`, or the
/// names of crates further down without `lula-`; what stands in brackets is for the reader.
pub(crate) fn parse(document: &str) -> Result<Table> {
    let rows = rows(document)?;
    let names = rows
        .iter()
        .map(|(name, _)| name.clone())
        .collect::<Vec<_>>();
    let mut table = Vec::new();
    for (position, (name, may_know)) in rows.iter().enumerate() {
        ensure!(
            !names[..position].contains(name),
            "`{name}` has two rows in the table of crates"
        );
        let below = &names[position + 1..];
        let may_know = match may_know.as_str() {
            "nothing" => BTreeSet::new(),
            "everything below" => below.iter().cloned().collect(),
            list => list
                .split(',')
                .map(|known| full_name(name, known.trim(), below))
                .collect::<Result<_>>()?,
        };
        table.push(Row {
            name: name.clone(),
            may_know,
        });
    }
    Ok(Table(table))
}

fn full_name(of: &str, known: &str, below: &[String]) -> Result<String> {
    let full = format!("lula-{known}");
    ensure!(
        below.contains(&full),
        "the table of crates lets `{of}` know `{known}`, but no row below it is `{full}`: \
         dependencies point down only"
    );
    Ok(full)
}

/// The names and last cells of the table's rows.
fn rows(document: &str) -> Result<Vec<(String, String)>> {
    let mut lines = document
        .lines()
        .skip_while(|line| line.trim() != HEADING)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    let head = cells(
        lines
            .next()
            .with_context(|| format!("no table below `{HEADING}`"))?,
    );
    ensure!(
        head == ["crate", "room", "may know"],
        "the table below `{HEADING}` has the columns {head:?}, not `crate | room | may know`"
    );
    let mut rows = Vec::new();
    for line in lines.skip(1) {
        let [name, _, may_know] = cells(line)
            .try_into()
            .ok()
            .with_context(|| format!("a row of the table of crates has not three cells: {line}"))?;
        let Some(name) = name
            .strip_prefix('`')
            .and_then(|name| name.strip_suffix('`'))
        else {
            bail!("a row of the table of crates has no crate in backticks: {line}");
        };
        rows.push((name.to_owned(), without_brackets(&may_know)));
    }
    ensure!(!rows.is_empty(), "the table below `{HEADING}` has no rows");
    Ok(rows)
}

fn cells(line: &str) -> Vec<String> {
    line.trim()
        .trim_matches('|')
        .split('|')
        .map(|cell| cell.trim().to_owned())
        .collect()
}

fn without_brackets(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('(') {
        plain.push_str(before.trim_end());
        rest = after.split_once(')').map_or("", |(_, tail)| tail);
    }
    plain.push_str(rest);
    plain.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(rows: &str) -> String {
        format!(
            "# Architecture\n\n## Crates\n\nWords.\n\n| crate | room | may know |\n|---|---|---|\n{rows}\n\n## Next\n"
        )
    }

    #[test]
    fn a_row_names_what_its_crate_may_know() {
        let table = parse(&document(
            "| `lula` | the binary | everything below |\n\
             | `lula-runner` | tools | store (its client), protocol |\n\
             | `lula-store` | keeps | protocol |\n\
             | `lula-protocol` | types | nothing |",
        ))
        .unwrap();
        let known = |name| {
            table
                .may_know(name)
                .unwrap()
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            known("lula"),
            ["lula-protocol", "lula-runner", "lula-store"]
        );
        assert_eq!(known("lula-runner"), ["lula-protocol", "lula-store"]);
        assert!(known("lula-protocol").is_empty());
        assert!(table.may_know("lula-index").is_none());
    }

    #[test]
    fn the_table_itself_may_not_point_up() {
        let upwards =
            document("| `lula-protocol` | types | nothing |\n| `lula-store` | keeps | graph |");
        let error = parse(&upwards).unwrap_err().to_string();
        assert!(error.contains("lets `lula-store` know `graph`"), "{error}");
    }

    #[test]
    fn a_missing_or_changed_table_is_an_error_not_an_empty_rule() {
        assert!(parse("# Architecture\n").is_err());
        assert!(parse("## Crates\n\n| crate | may know |\n|---|---|\n").is_err());
        assert!(parse(&document("")).is_err());
        assert!(parse(&document("| lula | the binary | nothing |")).is_err());
    }
}
