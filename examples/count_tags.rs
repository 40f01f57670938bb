//! Counts the values of a key on every core: `cargo run --release --example count_tags -- FILE KEY`

use pbfhogg::{ElementReader, Error};
use std::collections::HashMap;

fn main() -> pbfhogg::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(wanted)) = (arguments.next(), arguments.next()) else {
        return Err(Error::Usage("give a FILE and a KEY".into()));
    };
    let reader = ElementReader::from_path(path)?;
    let states = reader.par_fold(HashMap::<String, u64>::new, |counts, element| {
        for (_, value) in element.tags().filter(|(key, _)| *key == wanted) {
            *counts.entry(value.to_owned()).or_default() += 1;
        }
    })?;
    let mut counts: HashMap<String, u64> = HashMap::new();
    for (value, count) in states.into_iter().flatten() {
        *counts.entry(value).or_default() += count;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    for (value, count) in counts {
        println!("{count:>10}  {value}");
    }
    Ok(())
}
