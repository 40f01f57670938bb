//! Copies the ways with a tag, and nothing else: `cargo run --example filter_file -- INPUT OUTPUT KEY`

use pbfhogg::{ElementReader, ElementWriter, Error, KindSet, ObjectKind};

fn main() -> pbfhogg::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, wanted] = arguments.as_slice() else {
        return Err(Error::Usage("give INPUT, OUTPUT and KEY".into()));
    };
    let mut writer = ElementWriter::create(output)?;
    let reader = ElementReader::from_path(input)?.kinds(KindSet::of(ObjectKind::Way));
    reader.try_for_each(|element| {
        if element.tags().any(|(key, _)| key == wanted) {
            writer.write_element(&element)
        } else {
            Ok(())
        }
    })?;
    let written = writer.finish()?;
    println!("{} ways", written.objects.unwrap_or_default());
    Ok(())
}
