//! Looks on every core for a speed limit that is no number, and stops at one: `cargo run --example first_mistake -- FILE`

use pbfhogg::ElementReader;
use std::error::Error;

/// An error that may come from another thread.
type AnyError = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), AnyError> {
    let path = std::env::args().nth(1).ok_or("give a FILE")?;
    let counts = ElementReader::from_path(path)?.par_try_fold(
        || 0_u64,
        |limits, element| -> Result<(), AnyError> {
            for (_, value) in element.tags().filter(|(key, _)| *key == "maxspeed") {
                let number = value.trim_end_matches(" mph");
                if number.parse::<u32>().is_err() {
                    return Err(format!("{} {}: {value}", element.kind(), element.id()).into());
                }
                *limits += 1;
            }
            Ok(())
        },
    )?;
    println!("{} speed limits", counts.iter().sum::<u64>());
    Ok(())
}
