"""Text to HTML and to terminal text: pure functions that know neither IPython nor the Answer.

The answer's Markdown and every title, URL and snippet are as hostile as any web page. ``links``
decides what may be linked, ``markers`` what is a citation, ``parser`` what is code, link or maths;
``markdown`` and ``live`` write the body, ``page`` all around it, ``terminal`` the plain text.
Importing a module here loads neither the Markdown parser nor the sanitizer.
"""
