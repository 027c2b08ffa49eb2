//! How the figures look: one style for all, on top of `plotters`.
//!
//! ```text
//! Picture   title, subtitle, a row of panels side by side
//! Panel     two axes, thin grid, lines, dots and labels next to what they name
//! ```
//!
//! `plotters` draws on whole pixels. A picture is drawn larger and shown at its size, so that
//! curves are smooth.

use pg_bloom_core::Layout;
use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

/// Drawn pixels for one that is shown.
const FINE: i32 = 4;
/// Width of every picture, in pixels that are shown, like all sizes from here on.
const WIDTH: i32 = 800;
/// Where the panels start, below title and subtitle.
const TOP: i32 = 62;
const MARGIN: i32 = 16;
/// Room for the labels of the y axis, left of the first panel.
const LABELS: i32 = 56;
/// From the y axis to its name, where that stands beside it.
const NAME: i32 = 57;
/// Between panels.
const BETWEEN: i32 = 26;
const FONT: &str = "sans-serif";
/// Sizes of text.
const TITLE: i32 = 18;
const BODY: i32 = 13;
const SMALL: i32 = 12;

const PAPER: RGBColor = RGBColor(255, 255, 255);
/// Titles and labels of axes.
pub const INK: RGBColor = RGBColor(31, 35, 40);
/// What is said besides.
pub const GREY: RGBColor = RGBColor(99, 108, 118);
const GRID: RGBColor = RGBColor(228, 231, 235);
const BASE: RGBColor = RGBColor(145, 152, 161);

/// What is not about one layout: Okabe and Ito's purple, darkened.
pub const PURPLE: RGBColor = RGBColor(163, 63, 122);

/// The colour of a layout, in every figure: Okabe and Ito's blue, vermilion and (darkened) green,
/// which colour-blind eyes keep apart.
pub fn colour(layout: Layout) -> RGBColor {
    match layout {
        Layout::Blocked => RGBColor(0, 114, 178),
        Layout::Classic => RGBColor(200, 85, 0),
        Layout::Parquet => RGBColor(0, 135, 100),
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

fn fine(pixels: i32) -> i32 {
    pixels * FINE
}

fn style(size: i32, bold: bool, colour: RGBColor, pos: Pos) -> TextStyle<'static> {
    let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
    TextStyle {
        font: (FONT, fine(size), style).into_font(),
        color: colour.to_backend_color(),
        pos,
    }
}

fn width(pixels: f64) -> u32 {
    (pixels * f64::from(FINE)).round() as u32
}

/// A finished picture.
pub struct Picture {
    svg: String,
}

impl Picture {
    /// Draws one of this height: `paint` is given as many areas, of equal width, as there are
    /// `panels`.
    pub fn draw(
        title: &str,
        subtitle: &str,
        height: i32,
        panels: usize,
        paint: impl FnOnce(&[Area<'_>]),
    ) -> Picture {
        let mut svg = String::new();
        {
            let root = SVGBackend::with_string(&mut svg, (fine(WIDTH) as u32, fine(height) as u32))
                .into_drawing_area();
            root.fill(&PAPER).expect("text can be drawn on");
            let write = |text: &str, y: i32, size: i32, bold: bool, colour| {
                let style = style(size, bold, colour, Pos::new(HPos::Left, VPos::Center));
                root.draw(&Text::new(text.to_owned(), (fine(MARGIN), fine(y)), style))
                    .expect("text can be drawn on");
            };
            write(title, 24, TITLE, true, INK);
            write(subtitle, 46, BODY, false, GREY);
            let body = root.margin(fine(TOP), fine(6), fine(MARGIN), fine(MARGIN));
            let each = (body.dim_in_pixel().0 as i32 - fine(LABELS)) / panels as i32;
            let breaks: Vec<i32> = (1..panels as i32).map(|i| fine(LABELS) + i * each).collect();
            paint(&body.split_by_breakpoints(breaks, [0; 0]));
            root.present().expect("text can be drawn on");
        }
        Picture { svg: show_small(&svg, title, height) }
    }

    /// Its text.
    pub fn svg(&self) -> &str {
        &self.svg
    }
}

/// Has the picture shown at its size, named for those who can't see it, and without what changes
/// nothing.
fn show_small(svg: &str, title: &str, height: i32) -> String {
    let drawn = format!("<svg width=\"{}\" height=\"{}\"", fine(WIDTH), fine(height));
    let shown = format!("<svg role=\"img\" width=\"{WIDTH}\" height=\"{height}\"");
    assert!(svg.starts_with(&drawn), "plotters starts with the size");
    let (head, body) = svg.split_once(">\n").expect("the first element ends");
    format!("{}>\n<title>{title}</title>\n{body}", head.replacen(&drawn, &shown, 1))
        .replace(" opacity=\"1\"", "")
}

/// One axis.
#[derive(Clone)]
pub struct Axis {
    name: String,
    range: Range<f64>,
    ticks: Vec<(f64, String)>,
    log: bool,
}

impl Axis {
    /// A linear axis with these ticks.
    pub fn linear(
        name: &str,
        range: Range<f64>,
        ticks: impl IntoIterator<Item = (f64, String)>,
    ) -> Axis {
        Axis {
            name: name.into(),
            range,
            ticks: ticks.into_iter().collect(),
            log: false,
        }
    }

    /// A logarithmic axis with these ticks.
    pub fn log(
        name: &str,
        range: Range<f64>,
        ticks: impl IntoIterator<Item = (f64, String)>,
    ) -> Axis {
        Axis {
            name: name.into(),
            range,
            ticks: ticks.into_iter().collect(),
            log: true,
        }
    }

    /// The same with ticks that say nothing, for a panel whose left neighbour has the same axis.
    pub fn unlabelled(&self) -> Axis {
        let ticks = self.ticks.iter().map(|(at, _)| (*at, String::new())).collect();
        Axis { name: String::new(), ticks, ..self.clone() }
    }

    fn place(&self, value: f64) -> f64 {
        if self.log { value.log10() } else { value }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        let (first, last) = (self.place(self.range.start), self.place(self.range.end));
        let share = (self.place(*value) - first) / (last - first);
        (f64::from(start) + share * f64::from(end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(at, _)| *at).collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        self.ticks
            .iter()
            .find(|(at, _)| at == value)
            .map_or_else(String::new, |(_, label)| label.clone())
    }
}

/// A false positive rate as users write it, and in powers of ten where that has too many zeros.
pub fn rate_label(rate: f64) -> String {
    if rate > 5e-4 {
        return format!("{rate}");
    }
    let exponent = (-rate.log10()).round() as usize;
    format!("10⁻{}", ["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"][exponent])
}

/// Where a label stands, seen from its point.
#[derive(Clone, Copy)]
pub enum Side {
    Left,
    Right,
    Above,
}

/// One panel of a picture.
pub struct Panel<'a> {
    chart: Chart<'a>,
    area: Area<'a>,
    x: Axis,
    y: Axis,
}

impl<'a> Panel<'a> {
    /// A panel with its title, axes and grid. The name of the x axis stands below it, that of the y
    /// axis in the title's place when there is no title, else beside the axis.
    pub fn new(area: &Area<'a>, title: &str, colour: RGBColor, x: Axis, y: Axis) -> Panel<'a> {
        let left = if y.ticks.iter().all(|(_, label)| label.is_empty()) { 0 } else { LABELS };
        let mut chart = ChartBuilder::on(area)
            .margin_top(fine(28))
            .margin_right(fine(BETWEEN))
            .set_label_area_size(LabelAreaPosition::Left, fine(left))
            .set_label_area_size(LabelAreaPosition::Bottom, fine(42))
            .build_cartesian_2d(x.clone(), y.clone())
            .expect("text can be drawn on");
        chart
            .configure_mesh()
            .bold_line_style(GRID.stroke_width(width(1.0)))
            .light_line_style(TRANSPARENT)
            .axis_style(BASE.stroke_width(width(1.0)))
            .disable_y_axis()
            .set_tick_mark_size(LabelAreaPosition::Bottom, fine(4))
            .label_style(style(SMALL, false, GREY, Pos::default()))
            .draw()
            .expect("text can be drawn on");
        let panel = Panel { chart, area: area.clone(), x, y };
        let (across, down) = panel.chart.plotting_area().get_pixel_range();
        let (left, top, bottom) = (across.start, down.start, down.end);
        for (at, label) in &panel.y.ticks {
            let middle = panel.chart.backend_coord(&(panel.x.range.start, *at)).1;
            panel.write(
                (left - fine(8), middle),
                label,
                SMALL,
                false,
                GREY,
                Pos::new(HPos::Right, VPos::Center),
            );
        }
        let (heading, bold, ink) = if title.is_empty() {
            (&*panel.y.name, false, GREY)
        } else {
            (title, true, colour)
        };
        panel.write(
            (left, top - fine(14)),
            heading,
            BODY,
            bold,
            ink,
            Pos::new(HPos::Left, VPos::Center),
        );
        if !title.is_empty() && !panel.y.name.is_empty() {
            panel.write_upwards((left - fine(NAME), (top + bottom) / 2), &panel.y.name);
        }
        let middle = (across.start + across.end) / 2;
        let below = (middle, bottom + fine(32));
        panel.write(below, &panel.x.name, BODY, false, GREY, Pos::new(HPos::Center, VPos::Center));
        panel
    }

    fn write(&self, at: (i32, i32), text: &str, size: i32, bold: bool, colour: RGBColor, pos: Pos) {
        self.write_in(at, text, style(size, bold, colour, pos));
    }

    /// The name of an axis that is read upwards.
    fn write_upwards(&self, at: (i32, i32), text: &str) {
        let style = style(BODY, false, GREY, Pos::new(HPos::Center, VPos::Center));
        self.write_in(
            at,
            text,
            TextStyle {
                font: style.font.transform(FontTransform::Rotate270),
                ..style
            },
        );
    }

    fn write_in(&self, at: (i32, i32), text: &str, style: TextStyle<'_>) {
        let (left, top) = self.area.get_base_pixel();
        let at = (at.0 - left, at.1 - top);
        self.area
            .draw(&Text::new(text.to_owned(), at, style))
            .expect("text can be drawn on");
    }

    /// A line through these points; what is below the y axis is cut off.
    pub fn line(&mut self, points: &[(f64, f64)], colour: RGBColor, thickness: f64) {
        let floor = self.y.range.start;
        let height = |y: f64| self.y.place(y) - self.y.place(floor);
        let mut shown: Vec<(f64, f64)> = Vec::new();
        for (i, &(x, y)) in points.iter().enumerate() {
            if let Some(&(x0, y0)) = i.checked_sub(1).and_then(|before| points.get(before))
                && (y0 < floor) != (y < floor)
            {
                let share = height(y0) / (height(y0) - height(y));
                shown.push((x0 + share * (x - x0), floor));
            }
            if y >= floor {
                shown.push((x, y));
            }
        }
        self.chart
            .draw_series(LineSeries::new(shown, colour.stroke_width(width(thickness))))
            .expect("text can be drawn on");
    }

    /// A dot at each of these points.
    pub fn dots(&mut self, points: &[(f64, f64)], colour: RGBColor, radius: f64) {
        let dots = points.iter().map(|&p| Circle::new(p, width(radius), colour.filled()));
        let dots: Vec<_> = dots.collect();
        self.chart.draw_series(dots).expect("text can be drawn on");
    }

    /// A ring around each of these points, empty inside.
    pub fn rings(&mut self, points: &[(f64, f64)], colour: RGBColor, radius: f64) {
        let discs = points
            .iter()
            .map(|&at| Circle::new(at, width(radius), PAPER.filled()));
        self.chart.draw_series(discs).expect("text can be drawn on");
        let rings = points
            .iter()
            .map(|&at| Circle::new(at, width(radius), colour.stroke_width(width(1.75))));
        self.chart.draw_series(rings).expect("text can be drawn on");
    }

    /// Text next to a point.
    pub fn label(&self, at: (f64, f64), side: Side, text: &str, colour: RGBColor) {
        let (x, y) = self.chart.backend_coord(&at);
        let (dx, dy, horizontal) = match side {
            Side::Left => (-10, 0, HPos::Right),
            Side::Right => (10, 0, HPos::Left),
            Side::Above => (0, -13, HPos::Center),
        };
        let pos = Pos::new(horizontal, VPos::Center);
        self.write((x + fine(dx), y + fine(dy)), text, BODY, false, colour, pos);
    }

    /// A name to the right of a point, and something about it below.
    pub fn note(&self, at: (f64, f64), name: &str, about: &str, colour: RGBColor) {
        let (x, y) = self.chart.backend_coord(&at);
        let pos = Pos::new(HPos::Left, VPos::Center);
        self.write((x + fine(10), y - fine(2)), name, BODY, true, colour, pos);
        self.write((x + fine(10), y + fine(14)), about, SMALL, false, GREY, pos);
    }
}
