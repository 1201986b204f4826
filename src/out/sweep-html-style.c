/* SPDX-License-Identifier: MIT */
/*
 * The page's looks: black on white, in one column; tables become lists on narrow screens; on paper
 * no picture is cut. Colours differ in lightness as well, and colour is never the only sign of a
 * fact.
 */
#include "sweep-html.h"

static const char text_rules[] =
	"*{box-sizing:border-box}\n"
	":root{color-scheme:light}\n"
	"body{margin:0;background:#fff;color:#1a1a1a;font:16px/1.5 system-ui,sans-serif;"
	"overflow-wrap:break-word}\n"
	".name,.said,.outside{overflow-wrap:anywhere}\n"
	"main{max-width:72rem;margin:0 auto;padding:1rem}\n"
	"h1{font-size:1.6rem;line-height:1.25;margin:.2rem 0 1rem}\n"
	"h2{font-size:1.25rem;margin:2.5rem 0 .5rem;border-bottom:1px solid #999}\n"
	"h3{font-size:1.05rem;margin:0 0 .3rem}\n"
	"p{max-width:46rem;margin:.5rem 0}\n"
	".kind,small,.means,.share,caption,figcaption,dt{color:#4a4a4a}\n"
	"small,.means,.share{display:block;font-size:.8rem;font-weight:400}\n"
	".lead{font-size:1.1rem}\n"
	".name,code{font-family:ui-monospace,monospace;font-size:.95em}\n"
	".ci{white-space:nowrap;color:#4a4a4a;font-size:.85rem}\n"
	".share .ci{font-size:inherit}\n"
	".warnings,.reasons{padding-left:1.2rem;margin:.3rem 0;max-width:46rem}\n"
	".warnings{background:#fff4d6;border:1px solid #8a6d00;padding:.5rem .5rem .5rem 1.7rem}\n"
	".command{background:#f4f4f4;padding:.7rem;max-width:none}\n";

static const char table_rules[] =
	"table{border-collapse:collapse;font-size:.9rem;margin:1rem 0}\n"
	"caption{text-align:left;padding:.3rem 0}\n"
	"th,td{text-align:left;vertical-align:top;padding:.4rem .6rem;border-bottom:1px solid "
	"#ccc}\n"
	"thead th{border-bottom:2px solid #1a1a1a;vertical-align:bottom}\n"
	"tbody th{font-weight:600}\n"
	"table.wide{width:100%}\n"
	".wide>thead>tr>th:first-child{width:18%}\n"
	".label{display:none}\n"
	".verdict{display:inline-block;border:1px solid;padding:0 .4rem;border-radius:.2rem;"
	"font-size:.8rem;font-weight:700;white-space:nowrap}\n"
	".felt{color:#8c1d04;background:#fdeee9}\n"
	".part{color:#6b4a00;background:#fdf5df}\n"
	".hid{color:#0b4a6f;background:#e9f3f9}\n"
	".open{color:#444;background:#f2f2f2}\n"
	".facts{display:flex;flex-wrap:wrap;gap:.2rem 1.5rem;margin:.6rem 0;font-size:.9rem}\n"
	".facts div{display:flex;gap:.4rem;flex-wrap:wrap}\n"
	"dd{margin:0}\n"
	".legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;padding:0;"
	"font-size:.85rem}\n"
	".legend svg{vertical-align:-2px}\n";

static const char picture_rules[] =
	"article{border-top:1px solid #ccc;padding:1rem 0}\n"
	".pictures{display:flex;flex-wrap:wrap;gap:1rem 2rem;align-items:flex-start}\n"
	".pictures table{margin:.5rem 0}\n"
	".beside{flex:1 1 20rem;min-width:0}\n"
	".where{margin:1rem 0;max-width:34rem}\n"
	".course{margin:1.5rem 0;min-width:0}\n"
	"svg{font:12px system-ui,sans-serif;fill:#1a1a1a}\n"
	"svg.dose,svg.course{max-width:100%}\n"
	"svg.bar{display:block;min-width:6rem;overflow:visible}\n"
	".bar rect{fill:#3b75af}.bar.unproven rect{fill:#c8c8c8}.bar.gain rect{fill:#2f7d4f}\n"
	".bar.own rect{fill:#7d7d7d}\n"
	".bar line.zero,.axis{stroke:#1a1a1a;fill:none}\n"
	".bar line.mark{stroke:#1a1a1a;stroke-dasharray:2 2}\n"
	"line.ci,path.ci{stroke:#1a1a1a;stroke-width:1.5}\n"
	".grid{stroke:#ddd}.tick{fill:#4a4a4a}\n"
	".fit{stroke:#8c1d04;stroke-width:2;fill:none}\n"
	".fit.unproven{stroke:#777;stroke-dasharray:5 3}\n"
	".wedge{fill:#8c1d04;fill-opacity:.12}.wedge.unproven{fill:#777}\n"
	".whole{stroke:#1a1a1a;stroke-dasharray:2 3;fill:none}\n"
	".hinge{stroke:#0b4a6f;stroke-dasharray:4 2}\n"
	".slack{stroke:#0b4a6f;stroke-width:5;stroke-opacity:.6}\n"
	".point{fill:#1a1a1a}.point.alone{fill:#fff;stroke:#1a1a1a;stroke-width:1.5}\n"
	".dots path{fill:none;stroke-width:4;stroke-linecap:round;"
	"vector-effect:non-scaling-stroke}\n"
	".dots .off{stroke:#b0b0b0}.dots .sham{stroke:#3b75af}.dots .delayed{stroke:#c2410c}\n";

static const char narrow_rules[] =
	"@media(max-width:44rem){\n"
	"h1{font-size:1.3rem}\n"
	"table.wide,.wide>tbody,.wide>tbody>tr,.wide>tbody>tr>td,.wide>tbody>tr>th,"
	".wide>caption{display:block;width:100%;max-width:none}\n"
	".wide>thead{position:absolute;width:1px;height:1px;overflow:hidden;"
	"clip-path:inset(50%)}\n"
	".wide>tbody>tr{border-bottom:2px solid #1a1a1a;padding:.4rem 0}\n"
	".wide>tbody>tr>td,.wide>tbody>tr>th{border:0;padding:.15rem 0}\n"
	".wide .label{display:inline-block;min-width:6.5rem;color:#4a4a4a}\n"
	".wide .means,.wide .share{display:inline;margin-left:.4rem}\n"
	"}\n";

static const char paper_rules[] =
	"@page{margin:15mm}\n"
	"@media print{\n"
	":root{font-size:9pt}body{font-size:1rem}\n"
	"main{max-width:none;padding:0}\n"
	"article,tr,figure,svg{break-inside:avoid}\n"
	"h2,h3,caption,thead{break-after:avoid}\n"
	".bar rect,.stack rect,.swatch rect,.verdict,.wedge{print-color-adjust:exact;"
	"-webkit-print-color-adjust:exact}\n"
	"}\n";

void sweep_page_style(FILE *f)
{
	fputs("<style>\n", f);
	fputs(text_rules, f);
	fputs(table_rules, f);
	fputs(picture_rules, f);
	fputs(narrow_rules, f);
	fputs(paper_rules, f);
	fputs("</style>\n", f);
}
