//! Words from which the tags of synthetic objects and the names of mappers are made.

use std::sync::LazyLock;

/// A list of words.
type Words = LazyLock<Vec<&'static str>>;

/// Splits a text into words.
fn split_words(words: &'static str) -> Vec<&'static str> {
    words.split(' ').collect()
}

pub(super) static TOWN_FIRST: Words = LazyLock::new(|| {
    split_words(
        "Alten Neu Ober Unter Linden Birken Stein Wald Rosen Königs Mühl Sankt- Eichen Hohen Lauter \
     Schön Winter Sommer Klein Groß Weiß Grün Falken Brunn",
    )
});
pub(super) static TOWN_LAST: Words = LazyLock::new(|| {
    split_words(
        "berg dorf hausen heim stadt bach feld burg kirchen au brück tal rode hafen weiler furt",
    )
});
pub(super) static STREET_FIRST: Words = LazyLock::new(|| {
    split_words(
        "Haupt Bahnhof Schul Garten Dorf Kirch Berg Wald Ring Linden Wiesen Mühlen Goethe Schiller \
     Mozart Rosen Birken Feld Burg Markt Post Tal Eichen Ahorn Kastanien Brunnen Sonnen Amsel \
     Flieder Ufer Süd Nord",
    )
});
pub(super) static STREET_LAST: Words =
    LazyLock::new(|| split_words("straße weg allee gasse platz pfad"));
pub(super) static BUILDINGS: Words = LazyLock::new(|| {
    split_words(
        "yes house residential apartments garage detached shed commercial retail school church \
     industrial",
    )
});
pub(super) static HIGHWAYS: Words = LazyLock::new(|| {
    split_words("residential service tertiary secondary living_street unclassified primary")
});
pub(super) static SURFACES: Words =
    LazyLock::new(|| split_words("asphalt paved gravel sett paving_stones"));
pub(super) static SHOPS: Words = LazyLock::new(|| {
    split_words(
        "supermarket bakery convenience clothes hairdresser butcher florist kiosk books bicycle \
     optician chemist furniture shoes",
    )
});
pub(super) static AMENITIES: Words = LazyLock::new(|| {
    split_words(
        "bench restaurant cafe parking waste_basket post_box pharmacy bank fast_food kindergarten \
     drinking_water atm pub library",
    )
});
pub(super) static OWNERS: Words = LazyLock::new(|| {
    split_words(
        "Müller Schmidt Rossi Dubois Novák Kowalski García Jensen Öztürk Nagy Papadopoulos Иванов \
     Smith O'Brien Bauer Weber Wagner Lefèvre Silva Åkesson",
    )
});
pub(super) static LANDUSE: Words =
    LazyLock::new(|| split_words("grass forest farmland meadow residential orchard"));
