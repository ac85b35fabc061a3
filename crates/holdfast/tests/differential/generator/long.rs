//! Messages longer than what the pooler holds back of one.

use super::Generator;
use crate::step::{Bind, Step};

impl Generator {
    pub(super) fn long(&mut self, steps: &mut Vec<Step>) {
        let filler = "z".repeat(self.pick(&[20_000, 70_000, 200_000]));
        let literal = format!("select length('{filler}')");
        let (sql, values) = match self.random.u8(0..3) {
            0 => return steps.push(Step::Query(literal)),
            1 => (literal, Vec::new()),
            _ => ("select length($1)".to_owned(), vec![Some(filler.into_bytes())]),
        };
        let (portal, statement) = (String::new(), String::new());
        self.open.retain(|(name, _)| !name.is_empty());
        steps.push(Step::Parse { name: String::new(), sql, types: Vec::new() });
        let (formats, result_formats) = (Vec::new(), vec![1]);
        steps.push(Step::Bind(Bind { portal, statement, formats, values, result_formats }));
        steps.extend([Step::Execute { portal: String::new(), max_rows: 0 }, Step::Sync]);
        // The pooler keeps no unnamed statement as long as this for a later batch, which would show.
        let short = Step::Parse { name: String::new(), sql: "select 1".to_owned(), types: Vec::new() };
        steps.extend([short, Step::Sync]);
    }
}
