"""The style sheet of the page.

Invariant: every selector begins with ``.pplx``, no color is fixed (all are shades of the theme's
own text color, or its color for errors), and nothing is needed to understand the page: a front end
may drop it all.
"""

from __future__ import annotations

_LINE = "1px solid color-mix(in srgb, currentColor 16%, transparent)"
#: VS Code names it, or JupyterLab; elsewhere the words must do.
_ERROR = "var(--vscode-errorForeground, var(--jp-error-color1, currentColor))"
_TINT = "color-mix(in srgb, currentColor 5%, transparent)"

_RULES = f"""\
.pplx {{ max-width: 46em; color: inherit; line-height: 1.6; padding: .25em 0; }}
.pplx .pplx-body > :first-child {{ margin-top: 0; }}
.pplx p, .pplx ul, .pplx ol, .pplx blockquote, .pplx pre {{ margin: .7em 0; }}
.pplx h3, .pplx h4, .pplx h5, .pplx h6 {{ margin: 1.4em 0 .5em; line-height: 1.3;
  font-weight: 600; }}
.pplx h3 {{ font-size: 1.3em; }}
.pplx h4 {{ font-size: 1.13em; }}
.pplx h5, .pplx h6 {{ font-size: 1em; }}
.pplx li {{ margin: .25em 0; }}
.pplx li > p {{ margin: .35em 0; }}
.pplx li > ul, .pplx li > ol {{ margin: .15em 0; }}
.pplx blockquote {{ padding: 0 0 0 1em; border: 0;
  border-left: 2px solid color-mix(in srgb, currentColor 25%, transparent); }}
.pplx hr {{ border: 0; border-top: {_LINE}; margin: 1.4em 0; }}
.pplx code {{ font-size: .9em; padding: .1em .3em; border-radius: 3px; background: {_TINT}; }}
.pplx pre {{ padding: .8em 1em; border-radius: 6px; overflow-x: auto; background: {_TINT}; }}
.pplx pre code {{ padding: 0; background: none; }}
.pplx table {{ display: block; overflow-x: auto; border-collapse: collapse; margin: .9em 0;
  font-size: .95em; font-variant-numeric: tabular-nums; }}
.pplx th, .pplx td {{ padding: .4em .9em .4em 0; text-align: left; vertical-align: top;
  border: 0; border-bottom: {_LINE}; max-width: 30em; white-space: normal; }}
.pplx th {{ font-weight: 600; }}
.pplx tbody tr, .pplx tbody tr:nth-child(odd), .pplx tbody tr:hover {{ background: none; }}
.pplx .pplx-right {{ text-align: right; }}
.pplx .pplx-center {{ text-align: center; }}
.pplx .pplx-cite {{ font-size: .72em; line-height: 0; margin-left: .12em; white-space: nowrap; }}
.pplx a {{ text-decoration: none; }}
.pplx a:hover, .pplx a:focus {{ text-decoration: underline; }}
.pplx .pplx-unknown {{ opacity: .6; }}
.pplx .pplx-by-position {{ font-style: italic; }}
.pplx .pplx-math {{ overflow-x: auto; }}
.pplx .pplx-sources {{ margin: 1.1em 0 .6em; padding: .8em 0 0 2.4em; border-top: {_LINE};
  font-size: .92em; font-variant-numeric: tabular-nums; }}
.pplx .pplx-sources li {{ margin: .2em 0; padding-left: .2em; }}
.pplx .pplx-id, .pplx .pplx-day, .pplx small {{ opacity: .65; font-variant-numeric: tabular-nums; }}
.pplx .pplx-day {{ white-space: nowrap; }}
.pplx .pplx-sentence {{ min-width: 13em; }}
.pplx small {{ font-size: .9em; margin-left: .3em; }}
.pplx .pplx-uncited {{ opacity: .65; }}
.pplx .pplx-uncited small {{ opacity: .9; }}
.pplx details {{ margin: .5em 0; font-size: .95em; }}
.pplx summary {{ cursor: pointer; opacity: .75; }}
.pplx .pplx-note {{ font-size: .92em; opacity: .8; font-style: italic; }}
.pplx .pplx-status {{ margin: .8em 0 0; font-size: .9em; opacity: .7;
  font-variant-numeric: tabular-nums; }}
.pplx .pplx-calls {{ margin: .4em 0; }}
.pplx .pplx-calls th[scope=row] {{ font-weight: inherit; }}
.pplx .pplx-calls th, .pplx .pplx-calls td {{ vertical-align: baseline; line-height: 1.4; }}
.pplx .pplx-calls td, .pplx .pplx-calls code {{ overflow-wrap: anywhere; }}
.pplx .pplx-calls code {{ padding: 0; background: none; font-size: .95em; }}
.pplx .pplx-failed {{ color: {_ERROR}; }}
.pplx .pplx-error {{ padding: 0 0 0 1em; border-left: 3px solid currentColor; }}
"""

# Twice the class weighs more than a front end's own rules for tables and code.
STYLE = f"<style>\n{_RULES.replace('.pplx ', '.pplx.pplx ')}</style>\n"
