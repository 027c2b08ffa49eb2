from django.contrib import admin
from shop.models import Reader, Required


@admin.register(Reader)
class ReaderAdmin(admin.ModelAdmin):
    list_display = ["url", "seen", "days"]


@admin.register(Required)
class RequiredAdmin(admin.ModelAdmin):
    readonly_fields = ["seen", "days"]
