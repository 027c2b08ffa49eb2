//! What the planner asks an access method about a path, and knows about it.

use super::scan::Key;
use crate::pg::call::guard::{guard, raw};
use crate::pg::call::nodes::{argument, collated, items, nth};
use crate::pg::catalog::operators;
use crate::pg::memory;
use crate::pg::storage::relation::Opened;
use pgrx::pg_sys;
use std::marker::PhantomData;

/// A scan of an index that the planner thinks about.
pub struct Planned {
    root: *mut pg_sys::PlannerInfo,
    path: *mut pg_sys::IndexPath,
    pub index_pages: f64,
    /// Rows that the index has: those that its condition leaves, if it is partial.
    pub index_rows: f64,
    pub table_pages: f64,
    pub table_rows: f64,
    /// The share of the table's rows that match.
    pub selectivity: f64,
    /// How many keys are looked for in one scan.
    pub searches: f64,
    /// How often the scan is repeated, with other keys.
    pub loops: f64,
}

impl Planned {
    /// # Safety
    /// These must be what PostgreSQL passes to amcostestimate, and stay so while this is there.
    pub unsafe fn new(
        root: *mut pg_sys::PlannerInfo,
        path: *mut pg_sys::IndexPath,
        loops: f64,
    ) -> Planned {
        let mut generic = pg_sys::GenericCosts::default();
        // SAFETY: promised by the caller; the table of the index is known.
        let (index, table) = unsafe {
            let costs = &raw mut generic;
            guard(|| raw::genericcostestimate(root, path, loops, costs));
            (&*(*path).indexinfo, &*(*(*path).indexinfo).rel)
        };
        Planned {
            root,
            path,
            index_pages: f64::from(index.pages),
            index_rows: index.tuples,
            table_pages: f64::from(table.pages),
            table_rows: table.tuples,
            selectivity: generic.indexSelectivity,
            searches: generic.num_sa_scans.max(1.0),
            loops: loops.max(1.0),
        }
    }

    fn info(&self) -> &pg_sys::IndexOptInfo {
        // SAFETY: as `new` was promised.
        unsafe { &*(*self.path).indexinfo }
    }

    fn table(&self) -> &pg_sys::RelOptInfo {
        // SAFETY: the planner knows the index's table.
        unsafe { &*self.info().rel }
    }

    /// The index, which the planner has locked; `None` if it is only imagined.
    pub fn index(&self) -> Option<Opened<'_>> {
        let info = self.info();
        // SAFETY: a statement is planned.
        (!info.hypothetical)
            .then(|| unsafe { Opened::new(info.indexoid, pg_sys::NoLock as pg_sys::LOCKMODE) })
    }

    /// The operator family of the index, and its support function of this number for the type it is
    /// declared for.
    pub fn support_function(&self, number: i16) -> (pg_sys::Oid, Option<pg_sys::Oid>) {
        // SAFETY: an index has an operator family and a declared type for each column.
        let (family, declared) = unsafe { (*self.info().opfamily, *self.info().opcintype) };
        (family, operators::family_function(family, declared, number))
    }

    pub fn is_on_column(&self) -> bool {
        // SAFETY: an index has one of these for each column.
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

    /// Whether there are statistics of the index's column. Without them PostgreSQL takes each value
    /// for one of 200.
    pub fn has_statistics(&self) -> bool {
        // SAFETY: an index has a number for each column, 0 for an expression, whose statistics are
        // the index's own.
        unsafe {
            let column = *self.info().indexkeys as i16;
            let entry = *(*self.root).simple_rte_array.add(self.table().relid as usize);
            let (relation, number) =
                if column > 0 { ((*entry).relid, column) } else { (self.info().indexoid, 1) };
            let (relation, number) = (pg_sys::Datum::from(relation), pg_sys::Datum::from(number));
            let cache = pg_sys::SysCacheIdentifier::STATRELATTINH as i32;
            let (of_children, none) = (pg_sys::Datum::from(false), pg_sys::Datum::null());
            pg_sys::SearchSysCacheExists(cache, relation, number, of_children, none)
        }
    }

    fn conditions(&self) -> *mut pg_sys::List {
        // SAFETY: as `new` was promised.
        unsafe { pg_sys::get_quals_from_indexclauses((*self.path).indexclauses) }
    }

    /// What the index's column is compared with, if all of that is known now or can be computed.
    pub fn known_keys(&self) -> Option<Vec<Key<'_>>> {
        let root = self.root;
        // SAFETY: each condition of the path compares the index's column with something else.
        let key = |condition: *mut pg_sys::Node| unsafe {
            let condition: *mut pg_sys::RestrictInfo = condition.cast();
            let Comparison { operator, is_array, right, .. } =
                comparison((*condition).clause.cast())?;
            let asked = guard(|| raw::estimate_expression_value(root, right));
            if (*asked).type_ != pg_sys::NodeTag::T_Const {
                return None;
            }
            let asked = &*asked.cast::<pg_sys::Const>();
            let (strategy, asked_type) = operators::properties(*self.info().opfamily, operator)?;
            let value = (!asked.constisnull).then_some(asked.constvalue);
            Some(Key {
                strategy,
                asked_type,
                collation: pg_sys::InvalidOid,
                is_array,
                value,
                lifetime: PhantomData,
            })
        };
        // SAFETY: as above.
        unsafe { items(self.conditions()) }.map(key).collect()
    }

    /// Has the scan ask the index for another condition where `instead` returns one, given one of
    /// the query's. PostgreSQL then evaluates that on the rows that are found, as it does for what
    /// the conditions of support functions stand for. Nothing that other paths share is changed.
    ///
    /// # Safety
    /// `instead` must return nodes that are conditions of the index.
    pub unsafe fn ask_instead(&self, instead: impl Fn(&Comparison) -> Option<*mut pg_sys::Node>) {
        let mut clauses = std::ptr::null_mut();
        // SAFETY: as `new` was promised: the lists have clauses of the index, and those have
        // conditions on its column.
        unsafe {
            for clause in items((*self.path).indexclauses) {
                let clause = memory::copied(&*clause.cast::<pg_sys::IndexClause>());
                let mut conditions = std::ptr::null_mut();
                let is_the_querys = !(*clause).lossy;
                for condition in items((*clause).indexquals) {
                    let condition = memory::copied(&*condition.cast::<pg_sys::RestrictInfo>());
                    let found = comparison((*condition).clause.cast()).filter(|_| is_the_querys);
                    let found =
                        found.map(|found| found.collated_as((*(*clause).rinfo).clause.cast()));
                    if let Some(other) = found.and_then(|found| instead(&found)) {
                        (*condition).clause = other.cast();
                        // Not computed yet.
                        (*condition).eval_cost.startup = -1.0;
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

    /// Pages of the index that a loop reads from disk, if each scan reads `pages` random ones, some
    /// of them cached.
    pub fn index_pages_read(&self, pages: f64, scans: f64) -> f64 {
        self.pages_read(pages, scans, self.index_pages)
    }

    /// The same for pages of the table, which each loop reads.
    pub fn table_pages_read(&self, pages: f64) -> f64 {
        self.pages_read(pages, self.loops, self.table_pages)
    }

    fn pages_read(&self, pages: f64, scans: f64, of: f64) -> f64 {
        if scans <= 1.0 {
            return pages;
        }
        // SAFETY: asks for the size of the cache and what else the query reads.
        let read = unsafe {
            pg_sys::index_pages_fetched(
                pages * scans,
                (of as u32).max(1),
                self.index_pages,
                self.root,
            )
        };
        read / self.loops
    }

    /// Returns what reading a random page of the index costs.
    pub fn random_page_cost(&self) -> f64 {
        page_costs(self.info().reltablespace).random
    }

    /// Returns what reading a page of the table costs.
    pub fn table_page_costs(&self) -> PageCosts {
        page_costs(self.table().reltablespace)
    }

    pub fn keys_cost(&self) -> f64 {
        // SAFETY: the clauses are those of the path.
        unsafe { pg_sys::index_other_operands_eval_cost(self.root, self.conditions()) }
    }

    /// What comparing a row with the keys costs, and looking at it.
    pub fn row_cost(&self) -> f64 {
        // SAFETY: reads a setting.
        self.comparison_cost() + unsafe { pg_sys::cpu_tuple_cost }
    }

    pub fn comparison_cost(&self) -> f64 {
        let mut cost = pg_sys::QualCost::default();
        // SAFETY: the clauses are those of the path.
        unsafe { pg_sys::cost_qual_eval(&mut cost, self.conditions(), self.root) };
        cost.per_tuple
    }

    pub fn operator_cost(&self) -> f64 {
        // SAFETY: reads a setting.
        unsafe { pg_sys::cpu_operator_cost }
    }
}

/// Returns whether a query must hide rows of a table from its user. Of a partition or a child, that
/// is noted with the table that the query names.
///
/// # Safety
/// The table must be one of this query, of which it has a number, and the planner be at work on it.
unsafe fn is_filtered_for_user(root: &pg_sys::PlannerInfo, mut table: pg_sys::Index) -> bool {
    // SAFETY: promised by the caller; both arrays have a place for each number of a table, and the
    // second one is there if the query has parents.
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

/// Returns whether a query is one of a view with `security_barrier`, or below one. The planner
/// doesn't tell which part of the query around it a query is, so any such view there counts.
///
/// # Safety
/// The planner must be at work on the query.
unsafe fn is_below_barrier(root: &pg_sys::PlannerInfo) -> bool {
    // SAFETY: promised by the caller; a list of tables has their entries.
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
    /// With the collation that the query has, where PostgreSQL 18 and later made an array of an OR,
    /// without one.
    ///
    /// # Safety
    /// The clause must be the one that the query has.
    unsafe fn collated_as(self, clause: *mut pg_sys::Node) -> Comparison {
        // SAFETY: promised by the caller; all conditions of such an OR have one operator and one
        // collation.
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

/// What a clause compares; `None` for one that isn't by an operator.
///
/// # Safety
/// The clause must be a valid expression.
pub unsafe fn comparison(clause: *mut pg_sys::Node) -> Option<Comparison> {
    // SAFETY: promised by the caller. Both kinds of clauses have two arguments.
    unsafe {
        let (operator, is_array) = match (*clause).type_ {
            pg_sys::NodeTag::T_OpExpr => ((*clause.cast::<pg_sys::OpExpr>()).opno, false),
            pg_sys::NodeTag::T_ScalarArrayOpExpr => {
                ((*clause.cast::<pg_sys::ScalarArrayOpExpr>()).opno, true)
            }
            _ => return None,
        };
        let (left, right) = (argument(clause, 0)?, argument(clause, 1)?);
        Some(Comparison {
            operator,
            is_array,
            left,
            right,
            collation: pg_sys::exprInputCollation(clause),
        })
    }
}

/// What reading a page of a tablespace costs.
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

fn page_costs(tablespace: pg_sys::Oid) -> PageCosts {
    let mut costs = PageCosts { random: 0.0, next: 0.0 };
    // SAFETY: reads the options of the tablespace, or the settings.
    unsafe { pg_sys::get_tablespace_page_costs(tablespace, &mut costs.random, &mut costs.next) };
    costs
}
