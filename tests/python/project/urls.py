from django.contrib import admin
from django.urls import include, path
from rest_framework import routers
from shop.api import Readers

router = routers.DefaultRouter()
router.register("readers", Readers)
urlpatterns = [path("admin/", admin.site.urls), path("api/", include(router.urls))]
