//! What the planner asks an access method about a path, and knows about it.

use super::scan::Key;
use crate::pg::call::guard::{guard, raw};
use crate::pg::call::nodes::{argument, collated, items, nth};
use crate::pg::catalog::operators;
use crate::pg::memory;
use crate::pg::storage::relation::Opened;
use pg_bloom_core::memory::List;
use pgrx::pg_sys;
use std::marker::PhantomData;

/// A scan of an index for which the planner asks the cost.
pub struct PlannedScan {
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
    pub index_pages: f64,
    /// The rows that the index has: all rows of the table, or the ones that meet its WHERE clause.
    pub index_rows: f64,
    pub table_pages: f64,
    pub table_rows: f64,
    /// The share of the table's rows that meet the conditions, from 0 to 1.
    pub selectivity: f64,
    /// How many values one scan looks for, at least 1: more than one for `column = ANY (array)`.
    pub num_values: f64,
    /// How often the scan is repeated with other keys, at least 1.
    pub loops: f64,
}

impl PlannedScan {
    /// Reads what the planner knows about a scan of an index, for the function `amcostestimate`:
    /// sizes, how many rows match by its statistics, and how many values are looked for. `loops` says
    /// how often the scan is repeated with other keys.
    ///
    /// # Safety
    /// The arguments must be PostgreSQL's to `amcostestimate`, and valid as long as the result is
    /// used.
    pub unsafe fn new(
        root: *mut pg_sys::PlannerInfo,
        path: *mut pg_sys::IndexPath,
        loops: f64,
    ) -> PlannedScan {
        let mut generic = pg_sys::GenericCosts::default();
        // SAFETY: the caller promises a path over an index, whose table the planner knows.
        let (index, table) = unsafe {
            let costs = &raw mut generic;
            guard(|| raw::genericcostestimate(root, path, loops, costs));
            (&*(*path).indexinfo, &*(*(*path).indexinfo).rel)
        };
        PlannedScan {
            root,
            path,
            index_pages: f64::from(index.pages),
            index_rows: index.tuples,
            table_pages: f64::from(table.pages),
            table_rows: table.tuples,
            selectivity: generic.indexSelectivity,
            num_values: generic.num_sa_scans.max(1.0),
            loops: loops.max(1.0),
        }
    }

    /// Returns the planner's struct of the index.
    fn info(&self) -> &pg_sys::IndexOptInfo {
        // SAFETY: as `new` was promised.
        unsafe { &*(*self.path).indexinfo }
    }

    /// Returns the planner's struct of the index's table.
    fn table(&self) -> &pg_sys::RelOptInfo {
        // SAFETY: the planner knows the index's table.
        unsafe { &*self.info().rel }
    }

    /// Opens the index, which the planner has locked; `None` if it is a hypothetical one, which
    /// another extension has only described to the planner.
    pub fn index(&self) -> Option<Opened<'_>> {
        let info = self.info();
        if info.hypothetical {
            return None;
        }
        let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        // SAFETY: the planner keeps its lock until the end of the statement that is planned.
        Some(unsafe { Opened::new(info.indexoid, no_lock) })
    }

    /// Returns the operator family of the index's first column, and the family's support function
    /// of this number for the type that the column's operator class is declared for, if there is
    /// one.
    pub fn support_function(&self, number: i16) -> (pg_sys::Oid, Option<pg_sys::Oid>) {
        // SAFETY: an index has an operator family and a declared type for each column.
        let (family, declared) = unsafe { (*self.info().opfamily, *self.info().opcintype) };
        (family, operators::family_function(family, declared, number))
    }

    /// Returns whether the index's first column is a column of the table, and not an expression.
    pub fn is_on_column(&self) -> bool {
        // SAFETY: an index has a number for each of its columns, at least one.
        unsafe { *self.info().indexkeys > 0 }
    }

    /// Returns whether the user of the query may know how many rows of the table have a key: no
    /// policy of row-level security applies, and no view with `security_barrier` stands above.
    /// EXPLAIN shows estimates to everybody.
    pub fn may_show_all_rows(&self) -> bool {
        // SAFETY: as `new` was promised; the planner's structures refer to each other.
        unsafe {
            !is_filtered_for_user(&*self.root, self.table().relid) && !is_below_barrier(&*self.root)
        }
    }

    /// Returns whether ANALYZE has made statistics of the index's first column, or of the
    /// expression that is indexed in its place. Without them PostgreSQL assumes that the column has
    /// 200 distinct values.
    pub fn has_statistics(&self) -> bool {
        // SAFETY: an index has a number for each column, 0 for an expression, whose statistics are
        // the index's own.
        unsafe {
            let column = *self.info().indexkeys as i16;
            let entry = *(*self.root).simple_rte_array.add(self.table().relid as usize);
            let analyzed_relation;
            let analyzed_column;
            if column > 0 {
                analyzed_relation = (*entry).relid;
                analyzed_column = column;
            } else {
                analyzed_relation = self.info().indexoid;
                analyzed_column = 1;
            }
            let includes_children = false;
            pg_sys::SearchSysCacheExists(
                pg_sys::SysCacheIdentifier::STATRELATTINH as i32,
                pg_sys::Datum::from(analyzed_relation),
                pg_sys::Datum::from(analyzed_column),
                pg_sys::Datum::from(includes_children),
                pg_sys::Datum::null(),
            )
        }
    }

    /// Returns the conditions on the index's column, as the planner's list of clauses.
    fn conditions(&self) -> *mut pg_sys::List {
        // SAFETY: the path is valid, as the caller of `new` has promised.
        unsafe { pg_sys::get_quals_from_indexclauses((*self.path).indexclauses) }
    }

    /// Returns the scan keys of the planned scan, one for each condition: the values with which the
    /// query compares the index's column. `None` unless all are constants, or can be computed now
    /// without changing anything.
    pub fn known_keys(&self) -> Option<List<Key<'_>>> {
        // SAFETY: the list has the conditions of the path.
        unsafe { items(self.conditions()).map(|condition| self.known_key(condition.cast())) }
            .collect()
    }

    /// Returns the scan key of a condition (`column = 5`, `column = ANY (…)`): the value or array
    /// with which the condition compares the index's column, its type, and the operator's number in
    /// the operator family. `None` if the value isn't known while the query is planned.
    ///
    /// # Safety
    /// The condition must be one of the path.
    unsafe fn known_key(&self, condition: *mut pg_sys::RestrictInfo) -> Option<Key<'_>> {
        let root = self.root;
        // SAFETY: each condition of the path compares the index's column with something else, which
        // is an expression, and whose node has the struct of its tag.
        unsafe {
            let Comparison { operator, is_array, right, .. } =
                comparison((*condition).clause.cast())?;
            let estimate = guard(|| raw::estimate_expression_value(root, right));
            if (*estimate).type_ != pg_sys::NodeTag::T_Const {
                return None;
            }
            let constant = &*estimate.cast::<pg_sys::Const>();
            let value = if constant.constisnull { None } else { Some(constant.constvalue) };
            let (strategy, asked_type) =
                operators::strategy_and_right_type(*self.info().opfamily, operator)?;
            Some(Key {
                strategy,
                asked_type,
                collation: pg_sys::InvalidOid,
                is_array,
                value,
                lifetime: PhantomData,
            })
        }
    }

    /// Replaces the conditions by which the planned scan asks the index. Calls
    /// `replacement_of` with each condition of the query that is a comparison; it returns another
    /// condition, or `None` to leave it.
    ///
    /// PostgreSQL then evaluates the query's own condition on all rows that the index returns,
    /// since the replaced clause is marked as *lossy*, as if a support function had made it.
    /// Clauses that are lossy already are left. Only this path is changed, and nothing that other
    /// paths share. The new nodes are in the current memory context.
    ///
    /// # Safety
    /// `replacement_of` must return nodes that are conditions of the index.
    pub unsafe fn ask_instead(
        &self,
        replacement_of: impl Fn(&Comparison) -> Option<*mut pg_sys::Node>,
    ) {
        let mut clauses = std::ptr::null_mut();
        // SAFETY: the path is valid, as the caller of `new` has promised: it has a list of clauses
        // of the index, and each of these has a list of conditions on its column.
        unsafe {
            for clause in items((*self.path).indexclauses) {
                let clause = memory::copied(&*clause.cast::<pg_sys::IndexClause>());
                let mut conditions = std::ptr::null_mut();
                // The condition of a lossy clause was made by a support function.
                let is_of_query = !(*clause).lossy;
                // PostgreSQL 18 loses the collation of ORs when it makes the index's condition of
                // this clause.
                let clause_of_query = (*(*clause).rinfo).clause.cast();
                for condition in items((*clause).indexquals) {
                    let condition = memory::copied(&*condition.cast::<pg_sys::RestrictInfo>());
                    if is_of_query
                        && let Some(found) = comparison((*condition).clause.cast())
                        && let Some(replacement) =
                            replacement_of(&found.collated_as(clause_of_query))
                    {
                        let not_computed_yet = -1.0;
                        (*condition).clause = replacement.cast();
                        (*condition).eval_cost.startup = not_computed_yet;
                        (*clause).lossy = true;
                    }
                    conditions = pg_sys::lappend(conditions, condition.cast());
                }
                (*clause).indexquals = conditions;
                clauses = pg_sys::lappend(clauses, clause.cast());
            }
            (*self.path).indexclauses = clauses;
        }
    }

    /// Returns how many pages of the index one loop is expected to read from disk, if each of
    /// `scans` scans reads `pages` random ones: the cache has some pages that earlier scans have
    /// read.
    pub fn index_pages_read(&self, pages: f64, scans: f64) -> f64 {
        self.pages_read(pages, scans, self.index_pages)
    }

    /// Returns how many pages of the table one loop is expected to read from disk, if each loop
    /// reads `pages` random ones: the cache has some pages that earlier loops have read.
    pub fn table_pages_read(&self, pages: f64) -> f64 {
        self.pages_read(pages, self.loops, self.table_pages)
    }

    /// Returns how many pages one repetition of the planned scan reads from disk, in the mean over
    /// all `loops` repetitions. Together they make `scans` scans, each of which reads `pages`
    /// random pages of a relation that has `pages_of_relation`. The cache still has some of the
    /// pages that earlier scans have read: how many, PostgreSQL's formula (Mackert and Lohman)
    /// says.
    fn pages_read(&self, pages: f64, scans: f64, pages_of_relation: f64) -> f64 {
        if scans <= 1.0 {
            return pages;
        }
        // SAFETY: the planner is at work on the query, and a setting is read.
        let read_by_all_loops = unsafe {
            pg_sys::index_pages_fetched(
                pages * scans,
                (pages_of_relation as u32).max(1),
                self.index_pages,
                self.root,
            )
        };
        read_by_all_loops / self.loops
    }

    /// Returns the planner's cost of reading a random page of the index.
    pub fn random_page_cost(&self) -> f64 {
        page_costs(self.info().reltablespace).random
    }

    /// Returns the planner's costs of reading a page of the table.
    pub fn table_page_costs(&self) -> PageCosts {
        page_costs(self.table().reltablespace)
    }

    /// Returns the planner's cost of computing the keys, once for a scan.
    pub fn keys_cost(&self) -> f64 {
        // SAFETY: the list has the clauses of the path.
        unsafe { pg_sys::index_other_operands_eval_cost(self.root, self.conditions()) }
    }

    /// Returns the planner's cost of reading a row in memory and comparing it with the keys.
    pub fn row_cost(&self) -> f64 {
        // SAFETY: reads a setting.
        self.comparison_cost() + unsafe { pg_sys::cpu_tuple_cost }
    }

    /// Returns the planner's cost of comparing a row with the keys.
    pub fn comparison_cost(&self) -> f64 {
        let mut cost = pg_sys::QualCost::default();
        // SAFETY: the list has the clauses of the path.
        unsafe { pg_sys::cost_qual_eval(&mut cost, self.conditions(), self.root) };
        cost.per_tuple
    }

    /// Returns the planner's cost of one cheap operator, `cpu_operator_cost`.
    pub fn operator_cost(&self) -> f64 {
        // SAFETY: reads a setting.
        unsafe { pg_sys::cpu_operator_cost }
    }
}

/// Returns whether policies of row-level security, or views with `security_barrier`, hide some rows
/// of a table from the user of a query. For a partition or a child, the planner notes such filters
/// with the table that the query names, so the parents are looked at as well. `table` is the number
/// of the table in the query.
///
/// # Safety
/// The query must be one that is being planned, and `table` the number of a table in it.
unsafe fn is_filtered_for_user(root: &pg_sys::PlannerInfo, mut table: pg_sys::Index) -> bool {
    // SAFETY: the caller promises a table of a query that is being planned; both arrays have a
    // place for each number of a table, and the second one is there if the query has parents.
    unsafe {
        loop {
            let entry = &**root.simple_rte_array.add(table as usize);
            if !entry.securityQuals.is_null() {
                return true;
            }
            if root.append_rel_array.is_null() {
                return false;
            }
            match (*root.append_rel_array.add(table as usize)).as_ref() {
                Some(child) => table = child.parent_relid,
                None => return false,
            }
        }
    }
}

/// Returns whether a query that is being planned stands below a view with `security_barrier`, which
/// must not reveal the rows that it hides. The planner doesn't tell which part of the query around
/// it a query is, so any such view in one of these queries counts.
///
/// # Safety
/// The planner must be at work on the query.
unsafe fn is_below_barrier(root: &pg_sys::PlannerInfo) -> bool {
    // SAFETY: the caller promises a query that is being planned; a list of tables has their
    // entries.
    unsafe {
        let mut outer = root.parent_root;
        while let Some(query) = outer.as_ref() {
            let mut tables = items((*query.parse).rtable);
            if tables.any(|table| (*table.cast::<pg_sys::RangeTblEntry>()).security_barrier) {
                return true;
            }
            outer = query.parent_root;
        }
        false
    }
}

/// `left operator right`, or `left operator ANY (right)`.
pub struct Comparison {
    pub operator: pg_sys::Oid,
    pub is_array: bool,
    /// Of a condition of a path, the index's column.
    pub left: *mut pg_sys::Node,
    pub right: *mut pg_sys::Node,
    pub collation: pg_sys::Oid,
}

impl Comparison {
    /// Returns this comparison with the collation under which the query compares. PostgreSQL 18 and
    /// later turn `x = 1 OR x = 2` into `x = ANY (…)` for the index, and lose the collation: it is
    /// then taken from the first comparison of the OR. A comparison of another clause is returned
    /// as it is.
    ///
    /// # Safety
    /// `clause` must be the clause of the query from which the comparison was made.
    unsafe fn collated_as(self, clause: *mut pg_sys::Node) -> Comparison {
        // SAFETY: the caller promises an expression, whose node has the struct of its tag. All
        // comparisons of an OR from which an array is made have one operator and one collation.
        unsafe {
            if (*clause).type_ != pg_sys::NodeTag::T_BoolExpr {
                return self;
            }
            let condition = nth((*clause.cast::<pg_sys::BoolExpr>()).args, 0);
            let collation = condition
                .map_or(pg_sys::InvalidOid, |condition| pg_sys::exprInputCollation(condition));
            Comparison { right: collated(self.right, collation), collation, ..self }
        }
    }
}

/// Returns the parts of a clause that is a comparison: `left operator right` or
/// `left operator ANY (right)`, with the collation under which the operator compares. `None` for a
/// clause of another form.
///
/// # Safety
/// The clause must be a valid expression.
pub unsafe fn comparison(clause: *mut pg_sys::Node) -> Option<Comparison> {
    // SAFETY: the caller promises an expression, whose node has the struct of its tag.
    unsafe {
        let (operator, is_array) = match (*clause).type_ {
            pg_sys::NodeTag::T_OpExpr => ((*clause.cast::<pg_sys::OpExpr>()).opno, false),
            pg_sys::NodeTag::T_ScalarArrayOpExpr => {
                ((*clause.cast::<pg_sys::ScalarArrayOpExpr>()).opno, true)
            }
            _ => return None,
        };
        Some(Comparison {
            operator,
            is_array,
            left: argument(clause, 0)?,
            right: argument(clause, 1)?,
            collation: pg_sys::exprInputCollation(clause),
        })
    }
}

/// The planner's costs of reading a page of a tablespace.
pub struct PageCosts {
    /// A page that is anywhere: `random_page_cost`.
    pub random: f64,
    /// The page after the one that was read last: `seq_page_cost`.
    pub next: f64,
}

impl PageCosts {
    /// Returns the mean cost of a page of a range, whose pages follow each other: its first page is
    /// a random one. A range that is a part of a page is a page.
    pub fn of_range_page(&self, pages_of_range: f64) -> f64 {
        let pages = pages_of_range.max(1.0);
        (self.random + (pages - 1.0) * self.next) / pages
    }
}

/// Returns the planner's costs of reading a page of a tablespace.
fn page_costs(tablespace: pg_sys::Oid) -> PageCosts {
    let mut costs = PageCosts { random: 0.0, next: 0.0 };
    // SAFETY: reads the options of the tablespace, or the settings.
    unsafe { pg_sys::get_tablespace_page_costs(tablespace, &mut costs.random, &mut costs.next) };
    costs
}
