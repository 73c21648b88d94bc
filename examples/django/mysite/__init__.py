"""An example with Django: `python manage.py runserver`, and `crossdock worker run mysite.worker`."""
