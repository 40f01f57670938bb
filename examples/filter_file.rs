//! Copies the ways with a tag, without their metadata: `cargo run --example filter_file -- INPUT OUTPUT KEY`

use pbfhogg::{ElementReader, ElementWriter, Error, Info, KindSet, Object, ObjectKind};

fn main() -> pbfhogg::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, wanted] = arguments.as_slice() else {
        return Err(Error::Usage("give INPUT, OUTPUT and KEY".into()));
    };
    let mut writer = ElementWriter::create(output)?;
    let reader = ElementReader::from_path(input)?.kinds(KindSet::of(ObjectKind::Way));
    reader.try_for_each(|element| {
        if element.tags().any(|(key, _)| key == wanted) {
            let way = Object::from(&element).with_info(Info::default());
            writer.write(&way)?;
        }
        Ok(())
    })?;
    let written = writer.finish()?;
    println!("{} ways", written.objects.unwrap_or_default());
    Ok(())
}
