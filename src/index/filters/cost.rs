//! What a bitmap scan costs: a page of each tile and the row pages, for each key. Which rows match is the planner's own
//! estimate; none but these is read of the table.

use super::column::Index;
use crate::index::kind::Cost;
use crate::pg::method::planning::Planned;

/// Operators that asking a page of 127 filters is worth.
const OPERATORS_PER_PAGE: f64 = 60.0;

/// What a scan costs.
pub fn estimate(planned: &Planned) -> Cost {
    let asked = pages_asked(planned);
    let fetched = planned.index_pages_read(asked, planned.searches * planned.loops);
    let startup = planned.keys_cost();
    let total = startup
        + fetched * planned.random_page_cost()
        + asked * planned.searches * OPERATORS_PER_PAGE * planned.operator_cost();
    Cost { startup, total, selectivity: planned.selectivity }
}

/// Pages that a lookup reads. A damaged index must not keep the table's queries from being planned: the scan says
/// what is wrong.
fn pages_asked(planned: &Planned) -> f64 {
    let opened = planned.index();
    let directory = opened.as_ref().and_then(|opened| Index::of(opened.relation()).ok()?.directory().ok());
    match directory {
        Some(directory) => 1.0 + f64::from(directory.all_tiles()) + directory.all_row_pages() as f64,
        None => 1.0 + planned.index_pages / 100.0,
    }
}
