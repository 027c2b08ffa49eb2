use super::Condition::{All, Any, Has, Unknown};
use super::*;

#[test]
fn alternatives_are_those_of_the_widest_condition() {
    let many = || Any(List::from([Has(3), Has(1), Has(2), Has(1)]));
    assert_eq!(Alternatives::count(&many()), 4);
    assert_eq!(
        Alternatives::of_condition(many()),
        Alternatives {
            required: Unknown,
            choices: List::from([Has(1), Has(2), Has(3)])
        }
    );
    let both = All(List::from([Has(7), Any(List::from([Has(8), Has(9)])), many()]));
    assert_eq!(Alternatives::count(&both), 4);
    let required = All(List::from([Has(7), Any(List::from([Has(8), Has(9)]))]));
    assert_eq!(
        Alternatives::of_condition(both),
        Alternatives { required, choices: List::from([Has(1), Has(2), Has(3)]) }
    );
    let one = All(List::from([Has(7), Has(8)]));
    assert_eq!(Alternatives::count(&one), 1);
    assert_eq!(Alternatives::count(&Has(0)), 1);
    assert_eq!(Alternatives::count(&Condition::NONE), 0);
    assert_eq!(
        Alternatives::of_condition(Has(0)),
        Alternatives { required: Unknown, choices: List::from([Has(0)]) }
    );
}

#[test]
fn a_row_may_match_if_and_only_if_the_condition_holds_for_its_hashes() {
    // Hashes that share their lowest bits, 0 among them.
    let hash = |i: u64| i << 60;
    let condition = All(List::from([
        Any(List::from([
            Has(hash(0)),
            All(List::from([Has(hash(1)), Has(hash(2))])),
            Any(List::from([Has(hash(3)), Has(hash(4))])),
            Has(hash(5)),
        ])),
        Any(List::from([Has(hash(6)), Has(hash(1))])),
    ]));
    let alternatives = Alternatives::of_condition(condition.clone());
    let all: Vec<u32> = (0..alternatives.choices.len() as u32).collect();
    let mut test = RowTest::new(&alternatives);
    // Again and again, since what is watched changes.
    for bits in (0..4 << 8).map(|i| i * 89 % (1 << 8)) {
        let has = |of: u64| (0..8).any(|i| bits >> i & 1 == 1 && hash(i) == of);
        let mut may_match = |numbers: &[u32]| {
            let mut range = test.begin_range(numbers);
            let hashes = || (0..8).filter(|i| bits >> i & 1 == 1).map(hash);
            hashes().any(|hash| range.is_watched(hash)) && {
                let mut row = range.begin_row();
                hashes().for_each(|hash| row.add(hash));
                row.may_match()
            }
        };
        assert_eq!(may_match(&all), condition.holds(&has), "{bits:b}");
        for (number, one) in alternatives.choices.iter().enumerate() {
            let expected = one.holds(&has) && alternatives.required.holds(&has);
            assert_eq!(may_match(&[number as u32]), expected, "{bits:b}, {number}");
        }
        assert!(!may_match(&[]));
    }
}

#[test]
fn what_few_rows_have_is_watched() {
    let hash = |i: u64| i << 56;
    let all = (0..10).map(hash).map(Has);
    let mut test = RowTest::new(&Alternatives::of_condition(Condition::any([
        Condition::all(all),
        Has(hash(99)),
    ])));
    let mut range = test.begin_range(&[0, 1]);
    for _ in 0..10 {
        // Rows that have all but the seventh.
        let mut row = range.begin_row();
        (0..10).filter(|&i| i != 7).for_each(|i| row.add(hash(i)));
        assert!(!row.may_match());
    }
    let watched: Vec<u64> = (0..200).filter(|&i| range.is_watched(hash(i))).collect();
    assert_eq!(watched, [7, 99]);
}
