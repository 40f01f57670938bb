//! The reason why a region has no objects.

use crate::osm::Bbox;

/// The latitude of the north pole, in units of 1e-7 degree.
const MAX_LAT_E7: i32 = 900_000_000;

/// Returns the likely reason why `region` is empty, as the end of a sentence. `data` is the box around the nodes of the
/// file. If the latitude and the longitude of the region look swapped, the text says so. If `may_lack_nodes` is set,
/// the file may lack nodes of its ways, so the ways may reach beyond `data`.
pub(super) fn reason(region: &Bbox, data: &Bbox, may_lack_nodes: bool) -> String {
    let swapped = Bbox {
        min_lat_e7: region.min_lon_e7,
        max_lat_e7: region.max_lon_e7,
        min_lon_e7: region.min_lat_e7,
        max_lon_e7: region.max_lat_e7,
    };
    // If the longitudes of the region lie beyond 90 degrees, they cannot be latitudes, so nothing was swapped.
    let is_valid = swapped.min_lat_e7 >= -MAX_LAT_E7 && swapped.max_lat_e7 <= MAX_LAT_E7;
    match data.is_empty() {
        true if may_lack_nodes => String::new(),
        true => " (it has no nodes)".to_owned(),
        false if !region.intersects(data) && is_valid && swapped.intersects(data) => {
            format!("; latitude and longitude look swapped: the data lies in {data}")
        }
        false if may_lack_nodes => format!(": the nodes of the file lie in {data}"),
        false => format!(": the data lies in {data}"),
    }
}
