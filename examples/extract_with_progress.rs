//! Cuts out a box, and gives up after ten seconds: `cargo run --example extract_with_progress -- INPUT OUTPUT W,S,E,N`

use pbfhogg::areas::Shape;
use pbfhogg::commands::extract::{self, Extract};
use pbfhogg::{Bbox, Context, Error, ErrorKind, Observer, OutputTarget};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Default)]
struct Bar(AtomicU64);

impl Observer for Bar {
    fn advanced(&self, bytes: u64) {
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        eprint!("\r{} MB read", (before + bytes) / 1_000_000);
    }
}

fn main() -> pbfhogg::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, edges] = arguments.as_slice() else {
        return Err(Error::Usage("give INPUT, OUTPUT and W,S,E,N".into()));
    };
    let bbox = Bbox::parse_degrees(edges).map_err(Error::Usage)?;
    let ctx = Context::default().with_observer(Arc::new(Bar::default()));
    let clone = ctx.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(10));
        clone.cancel();
    });
    let region = Extract::new(Shape::of_bbox(&bbox), OutputTarget::file(output));
    let options = extract::Options::new(input, vec![region]);
    match extract::run(&options, &ctx) {
        Err(error) if error.kind() == ErrorKind::Cancelled => println!("\nit took too long"),
        result => println!("\n{:?}", result?),
    }
    Ok(())
}
