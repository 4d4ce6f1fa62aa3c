//! Columns of text, as wide as their widest cell.

use crate::text::one_line;

const GAP: &str = "  ";

#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub fn new(heading: [&str; N]) -> Self {
        Self { rows: vec![heading.map(str::to_owned)] }
    }

    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| one_line(&cell)));
    }

    /// The table, each line ended, no line with spaces at its end.
    pub fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..N).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let cells: Vec<String> =
                row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
            out.push_str(cells.join(GAP).trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["A", "LONG", "C"]);
        table.row(["wide".into(), "x".into(), String::new()]);
        table.row(["é\u{1b}".into(), "y".into(), "z".into()]);
        assert_eq!(table.render(), "A        LONG  C\nwide     x\né\\u001b  y     z\n");
    }
}
