//! The Python module `pbfhogg._pbfhogg`. The package in `package/pbfhogg` has what users see.

mod actions;
mod arguments;
mod batches;
mod builders;
mod changes;
mod commands;
mod error;
mod features;
mod geocoder;
mod info;
mod objects;
mod read;
mod rows;
mod source;
mod splits;
mod table;
mod warnings;
mod writer;

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_pbfhogg")]
fn define(module: &Bound<'_, PyModule>) -> PyResult<()> {
    batches::remember_main_thread(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<error::Error>())?;
    module.add_class::<table::Table>()?;
    module.add_class::<table::Batch>()?;
    module.add_class::<table::BatchIterator>()?;
    module.add_class::<geocoder::Geocoder>()?;
    module.add_class::<objects::Object>()?;
    module.add_class::<objects::ObjectIterator>()?;
    module.add_class::<writer::Writer>()?;
    module.add_function(wrap_pyfunction!(actions::actions, module)?)?;
    module.add_function(wrap_pyfunction!(arguments::plain_boxes, module)?)?;
    module.add_function(wrap_pyfunction!(changes::changes, module)?)?;
    module.add_function(wrap_pyfunction!(commands::call, module)?)?;
    module.add_function(wrap_pyfunction!(commands::commands, module)?)?;
    module.add_function(wrap_pyfunction!(commands::main, module)?)?;
    module.add_function(wrap_pyfunction!(features::features, module)?)?;
    module.add_function(wrap_pyfunction!(info::info, module)?)?;
    module.add_function(wrap_pyfunction!(objects::objects, module)?)?;
    module.add_function(wrap_pyfunction!(splits::splits, module)?)?;
    module.add_function(wrap_pyfunction!(read::read, module)?)?;
    Ok(())
}
